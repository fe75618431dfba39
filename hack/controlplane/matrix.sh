#!/usr/bin/env bash
# Runs suites on each version of Kubernetes that this folder has a module of, the newest first, and writes
# what passed into dist/matrix.md, as the README.md here shows it.
#
#   VERSIONS='1.36 1.35'   chooses versions
#   RUN=regexp             chooses suites (hack/test.sh); by default contract, children, charts and deploy
#
# A version that is not built yet takes 10 to 15 minutes on two cores, and 1.5 GB of Go's cache.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
root=$(cd "$here/../.." && pwd -P)
cd "$root"
source hack/steps.sh

run=${RUN:-'/test/(contract|children|charts|deploy)$'}
table=$root/dist/matrix.md
place=$root/.dev/matrix

# patch prints the version that a module builds.
patch() { sed -nE 's/^.*k8s\.io\/kubernetes v([0-9.]+)( .*)?$/\1/p' "$1/go.mod" | head -n 1; }

# tree copies the clone, with what is not committed, and gives the copy the control plane: suites look for it there.
# The copies have one place, so that Go compiles for the first alone. It is in the clone: MariaDB's server, which
# root starts as another user, may not look into root's cache.
tree() {
  local into=$1 programs=$2 program
  rm -rf "$into"
  mkdir -p "$into/bin" "$into/.dev"
  git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
    [[ ! -e $file && ! -L $file ]] || printf '%s\0' "$file"
  done | tar --null --files-from=- -cf - | tar -C "$into" -xf -
  # Not links: the manager looks beside its program for Ansible, and specs put it where there is none.
  for program in "$root"/bin/*; do
    if [[ -d $program ]]; then
      [[ $program == */controlplane* ]] || ln -s "$program" "$into/bin/"
    else
      cp "$program" "$into/bin/"
    fi
  done
  ln -s "$programs" "$into/bin/controlplane"
  ln -s "$root/.venv" "$into/.venv"
  [[ ! -d .dev/mariadb ]] || ln -s "$root/.dev/mariadb" "$into/.dev/mariadb"
}

# on VERSION PROGRAMS runs the suites on it, and adds a line for each to the table.
on() {
  local version=$1 copy=$place package result began status=0
  tree "$copy" "$2"
  git -C "$copy" init --quiet
  for package in $(cd "$copy" && go list ./test/... | grep -E "$run"); do
    began=$SECONDS result=passed
    (cd "$copy" && LABELS='' RUN="/${package##*/ensign/}\$" hack/test.sh suites) || result=FAILED status=1
    printf '| %s | %s | %s | %d s |\n' "$version" "${package##*/}" "$result" $((SECONDS - began)) >>"$table"
  done
  rm -rf "$copy"
  return "$status"
}

mkdir -p dist .dev
exec 9>"$place.lock"
! command -v flock >/dev/null || flock --nonblock 9 || { printf 'matrix: another one runs\n' >&2 && exit 1; }
printf '| Kubernetes | Suite | | |\n|---|---|---|---|\n' >"$table"
status=0
newest=$(patch "$here")
for minor in ${VERSIONS:-${newest%.*} $(cd "$here" && printf '%s\n' v*/ | tr -d v/ | sort -rV)}; do
  if [[ $minor == "${newest%.*}" ]]; then
    "$here/build.sh"
    version=$newest programs=$root/bin/controlplane
  else
    "$here/build.sh" "$minor"
    version=$(patch "$here/v$minor") programs=$root/bin/controlplane-$minor
  fi
  (step "Kubernetes $version" on "$version" "$programs") || status=1
done
cat "$table"
exit "$status"
