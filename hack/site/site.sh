#!/usr/bin/env bash
# Makes the site of docs/ by mkdocs, in an environment of its own (.dev/site).
#
#   hack/site/site.sh build [DIR]   into dist/site; a broken link or anchor, or a page that
#                                   the index does not list, is an error
#   hack/site/site.sh check         the same, and nothing is kept
#   hack/site/site.sh serve         at http://127.0.0.1:8000, again after each change
#   hack/site/site.sh lock          write requirements.txt anew from requirements.in
#
# It uses the Python of .venv, which hack/python.sh makes.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
venv=$root/.dev/site
lock=$root/hack/site/requirements.txt

# What the caller's shell sets for another Python must not reach this one.
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV PIP_TARGET PIP_PREFIX PIP_USER
export PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1 NO_MKDOCS_2_WARNING=1

say() { printf 'site: %s\n' "$*" >&2; }

expected_stamp() {
  readlink -f "$root/.venv/bin/python"
  cat "$lock"
}

# ensure makes the environment unless a finished one is there: the stamp is written last.
ensure() {
  mkdir -p "$root/.dev"
  if command -v flock >/dev/null; then # Two calls at once must not build into the same directory.
    exec 9>"$root/.dev/site.lock"
    flock 9
  fi
  [[ ! -f $venv/.ensign-stamp || $(cat "$venv/.ensign-stamp") != "$(expected_stamp)" ]] || return 0
  say "installing mkdocs into $venv"
  rm -rf "$venv"
  "$root/.venv/bin/python" -m venv "$venv"
  "$venv/bin/python" -m pip install --require-hashes --only-binary :all: --no-deps -r "$lock"
  "$venv/bin/python" -m pip check --quiet
  expected_stamp >"$venv/.ensign-stamp"
}

mkdocs() {
  local command=$1
  shift
  "$venv/bin/python" -m mkdocs "$command" --strict --config-file "$root/mkdocs.yml" "$@"
}

# build makes the site, and prints what is wrong with it alone. (With --quiet, mkdocs makes a site
# that has broken links.)
build() { mkdocs build --site-dir "$1" 2>&1 | sed '/^INFO/d; /^$/d'; }

case ${1:-} in
build)
  (ensure)
  build "${2:-$root/dist/site}"
  say "${2:-dist/site} is made"
  ;;
check)
  (ensure)
  dir=$(mktemp -d)
  trap 'rm -rf "$dir"' EXIT
  build "$dir"
  ;;
serve)
  (ensure)
  mkdocs serve
  ;;
lock)
  cd "$root"
  .venv/bin/uv pip compile --universal --python-version 3.12 --generate-hashes --no-emit-index-url \
    --custom-compile-command 'hack/site/site.sh lock' hack/site/requirements.in -o "$lock"
  ;;
*)
  printf 'usage: hack/site/site.sh build [DIR] | check | serve | lock\n' >&2
  exit 2
  ;;
esac
