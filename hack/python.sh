#!/usr/bin/env bash
# Makes .venv at the root of the tree: Ansible, its Python libraries, the
# collections of requirements.yml and the tools that test and lint the content,
# every file of it pinned by hash.
#
#   hack/python.sh          make .venv, or do nothing when it is up to date
#   hack/python.sh lock     write requirements*.txt anew from requirements*.in
#
# PYTHON=/path/to/python chooses the interpreter; otherwise the best one found
# of Python 3.12 or later is taken. Packages come from the index that pip is
# configured for on this machine.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
source "$root/hack/steps.sh"
venv=$root/.venv
stamp=$venv/.ensign-stamp
locks=(requirements.txt requirements-dev.txt requirements-collections.txt)
inputs=("${locks[@]}" requirements.yml .python-version hack/python/install_collections.py)

# What the caller's shell sets for another Python must not reach this one.
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV PIP_TARGET PIP_PREFIX PIP_USER
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf 'python: %s\n' "$*" >&2; }

die() {
  say "$@"
  exit 1
}

# expected_stamp prints what the stamp of a finished environment holds. The
# tree's path is part of it because the scripts in .venv/bin carry it; of this
# script the function that makes it, without its comments.
expected_stamp() {
  printf 'root %s\n' "$root"
  (cd "$root" && cat "${inputs[@]}")
  declare -f build
}

# up_to_date holds only for a finished build: the stamp is written last. With
# PYTHON set, the environment must also be made of that interpreter.
up_to_date() {
  [[ -f $stamp && -x $venv/bin/python ]] || return 1
  [[ $(cat "$stamp") == "$(expected_stamp)" ]] || return 1
  [[ -z ${PYTHON:-} ]] || [[ $(base_of "$PYTHON") == "$(base_of "$venv/bin/python")" ]]
}

base_of() { "$1" -c 'import os, sys; print(os.path.realpath(sys._base_executable))' 2>/dev/null; }

# fault prints why the interpreter $1 will not do; nothing when it will.
fault() {
  "$1" -c 'import sys
if sys.version_info < (3, 12):
    print("is Python %d.%d, too old" % sys.version_info[:2])
    raise SystemExit
try:
    import ensurepip, venv
except ImportError:
    print("lacks the venv module (Debian and Ubuntu: apt-get install python3-venv)")' 2>/dev/null ||
    printf 'does not run\n'
}

# candidates prints interpreters, best first: the version that the project is
# tested with, newer and older ones, pyenv's, and whatever python3 is.
candidates() {
  local tested pyenv=${PYENV_ROOT:-$HOME/.pyenv}
  tested=$(cat "$root/.python-version")
  local version
  for version in "$tested" 3.14 3.13 3.12; do
    printf '%s\n' "python$version"
    compgen -G "$pyenv/versions/$version.*/bin/python3" || true
  done
  printf '%s\n' python3 python
}

# choose_python prints the first interpreter that will do, or explains on
# stderr what was looked at and what to install.
choose_python() {
  local candidate why seen=()
  if [[ -n ${PYTHON:-} ]]; then
    why=$(fault "$PYTHON")
    [[ -z $why ]] || die "PYTHON=$PYTHON $why. Ensign needs Python 3.12 or later; unset PYTHON or name another."
    printf '%s\n' "$PYTHON"
    return
  fi
  while read -r candidate; do
    command -v "$candidate" >/dev/null || continue
    why=$(fault "$candidate")
    if [[ -z $why ]]; then
      printf '%s\n' "$candidate"
      return
    fi
    seen+=("  $(command -v "$candidate") $why")
  done < <(candidates)
  say "no usable Python 3.12 or later was found. Looked at:"
  ((${#seen[@]})) && printf '%s\n' "${seen[@]}" >&2
  say "Install Python 3.12 or later with its venv module:"
  say "  Debian 13, Ubuntu 24.04:  apt-get install python3 python3-venv"
  say "  Fedora:                   dnf install python3.13"
  say "  macOS:                    brew install python@3.13"
  say "  pyenv:                    pyenv install 3.13"
  die "or name one: PYTHON=/path/to/python3.13 make python"
}

# build makes the environment from nothing. A failure leaves it without a
# stamp, so that the next call starts over.
build() {
  local python began=$SECONDS
  python=$(choose_python) || exit 1
  say "making $venv with $("$python" --version) ($(base_of "$python")); about 40 s"
  rm -rf "$venv"
  "$python" -m venv "$venv"

  say "1/3 Python packages from requirements.txt and requirements-dev.txt"
  ticking "python: 1/3" "$venv/bin/python" -m pip install --quiet --require-hashes --only-binary :all: --no-deps \
    -r "$root/requirements.txt" -r "$root/requirements-dev.txt"
  "$venv/bin/python" -m pip check --quiet || die "the locked packages do not fit together; run hack/python.sh lock"

  say "2/3 collections of requirements.yml (downloads 50 MB, keeps 3)"
  mkdir "$venv/wheels"
  ticking "python: 2/3" "$venv/bin/python" -m pip download --quiet --require-hashes --only-binary :all: --no-deps \
    -r "$root/requirements-collections.txt" -d "$venv/wheels"
  "$venv/bin/python" "$root/hack/python/install_collections.py" "$root/requirements.yml" "$venv"/wheels/ansible-*.whl
  rm -r "$venv/wheels"

  say "3/3 trying it out"
  try_out
  expected_stamp >"$stamp"
  say "ready after $((SECONDS - began)) s: $venv"
}

# try_out runs the programs that the operator and its tests start. They find
# each other through PATH, which therefore begins with the new environment.
try_out() (
  export PATH=$venv/bin:$PATH
  unset ANSIBLE_CONFIG ANSIBLE_COLLECTIONS_PATH
  cd "$venv"
  ansible-runner --version >/dev/null || die "ansible-runner does not run"
  ansible-doc --json kubernetes.core.k8s >/dev/null || die "ansible-doc does not find kubernetes.core.k8s"
  molecule --version >/dev/null || die "molecule does not run"
)

# lock resolves requirements*.in for every supported Python and platform at
# once. The files name no index, so that they install from any.
lock() {
  local uv=$venv/bin/uv name
  [[ -x $uv ]] || die "locking needs uv from .venv; run hack/python.sh first"
  cd "$root"
  for name in "${locks[@]%.txt}"; do
    local extra=()
    [[ $name != requirements-collections ]] || extra=(--no-deps)
    say "locking $name.txt"
    "$uv" pip compile --quiet --universal --python-version 3.12 --generate-hashes --no-emit-index-url \
      --custom-compile-command 'hack/python.sh lock' "${extra[@]}" "$name.in" -o "$name.txt"
  done
}

# Two calls at once must not build into the same directory.
exclusively() {
  if command -v flock >/dev/null; then
    mkdir -p "$root/.dev"
    exec 9>"$root/.dev/python.lock"
    flock 9
  fi
}

case ${1:-ensure} in
ensure)
  up_to_date && exit 0
  exclusively
  up_to_date || build 9>&-
  ;;
lock) lock ;;
*) die "unknown argument \"$1\"; usage: hack/python.sh [lock]" ;;
esac
