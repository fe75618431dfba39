#!/usr/bin/env bash
# Makes an environment for each further ansible-core that the tests know, in
# .dev/python/VERSION, with the client of Kubernetes where plays need it, every file
# pinned by hash, and the collections of .venv. 2.18 is there to be refused; 2.21 is
# the one of .venv.
#
#   hack/python/matrix.sh [ensure] [VERSION…]   make what is not up to date
#   hack/python/matrix.sh lock                  write hack/python/core-*.txt anew from core-*.in
#
# It uses the Python of .venv, which hack/python.sh makes.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
python=$root/.venv/bin/python
versions=(2.18 2.19 2.20)

# What the caller's shell sets for another Python must not reach this one.
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV PIP_TARGET PIP_PREFIX PIP_USER
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf 'python matrix: %s\n' "$*" >&2; }

die() {
  say "$@"
  exit 1
}

# expected_stamp prints what the stamp of a finished environment holds. The
# tree's path is part of it because the scripts in bin carry it.
expected_stamp() {
  printf 'root %s\n' "$root"
  "$python" -c 'import os, sys; print(sys.version, os.path.realpath(sys._base_executable))'
  cat "$root/hack/python/core-$1.txt"
  declare -f ensure # Without comments: a word of explanation makes nothing anew.
}

purelib() { "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }

# ensure makes the environment of version $1, unless a finished one is there:
# the stamp is written last.
ensure() {
  local venv=$root/.dev/python/$1 lock=$root/hack/python/core-$1.txt began=$SECONDS
  [[ -f $lock ]] || die "there is no $lock; the versions are ${versions[*]}"
  [[ ! -f $venv/.ensign-stamp || $(cat "$venv/.ensign-stamp") != "$(expected_stamp "$1")" ]] || return 0
  rm -rf "$venv"
  "$python" -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --require-hashes --only-binary :all: --no-deps -r "$lock"
  "$venv/bin/python" -m pip check --quiet || die "the packages of $lock do not fit together; run hack/python/matrix.sh lock"
  ln -s "$(purelib "$python")/ansible_collections" "$(purelib "$venv/bin/python")/ansible_collections"
  expected_stamp "$1" >"$venv/.ensign-stamp"
  say "ready after $((SECONDS - began)) s: $venv"
}

# lock resolves for every supported Python and platform at once. The files name
# no index, so that they install from any.
lock() {
  local version uv=$root/.venv/bin/uv
  [[ -x $uv ]] || die "locking needs uv from .venv; run hack/python.sh first"
  cd "$root"
  for version in "${versions[@]}"; do
    say "locking core-$version.txt"
    "$uv" pip compile --quiet --universal --python-version 3.12 --generate-hashes --no-emit-index-url \
      --custom-compile-command 'hack/python/matrix.sh lock' "hack/python/core-$version.in" -o "hack/python/core-$version.txt"
  done
}

# Two calls at once must not build into the same directory.
exclusively() {
  mkdir -p "$root/.dev/python"
  command -v flock >/dev/null || return 0
  exec 9>"$root/.dev/python/lock"
  flock 9
}

case ${1:-ensure} in
ensure)
  [[ -x $python ]] || die "the matrix needs the Python of .venv; run hack/python.sh first"
  exclusively
  shift || true
  (($#)) || set -- "${versions[@]}"
  for version in "$@"; do ensure "$version" 9>&-; done
  ;;
lock) lock ;;
*) die "unknown argument \"$1\"; usage: hack/python/matrix.sh [ensure [VERSION…] | lock]" ;;
esac
