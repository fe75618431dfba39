#!/usr/bin/env bash
# Lints and formats the tree.
#
#   hack/lint.sh check      every linter; nothing is changed
#   hack/lint.sh formats    fails when a file is not formatted
#   hack/lint.sh modules    fails when a go.mod or go.sum is not tidy
#   hack/lint.sh prose      fails when documents, help, comments, messages or names of specs break a rule of hack/vale
#   hack/lint.sh fmt        formats
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$root"
source hack/steps.sh
export PATH=$root/.venv/bin:$PATH

# tool runs a program of hack/tools, which is built first where need be.
tool() {
  local name=$1
  shift
  hack/tools/build.sh "$name"
  "bin/tools/$name" "$@"
}

# tracked prints the tree's files that match a pattern, the new ones too.
tracked() { git ls-files --cached --others --exclude-standard -- "$@" | while read -r file; do [[ ! -e $file ]] || printf '%s\n' "$file"; done; }

go_lint() {
  tool golangci-lint run --allow-serial-runners ./...
  # Modules of their own, with the same rules.
  local module
  for module in hack/bundle examples/hybrid examples/visitors/app examples/visitors/go; do
    (cd "$module" && "$root/bin/tools/golangci-lint" run --config "$root/.golangci.yml" ./...)
  done
}

shell_lint() {
  local file
  while read -r file; do
    bash -n "$file"
  done < <(tracked '*.sh' .ci/run)
}

python_lint() {
  local files
  mapfile -t files < <(tracked '*.py')
  ((${#files[@]})) || return 0
  ruff check --quiet "${files[@]}"
  mypy --no-error-summary --explicit-package-bases "${files[@]}" # Two scripts may have one name.
}

python_format() {
  local files
  mapfile -t files < <(tracked '*.py')
  ((${#files[@]})) || return 0
  ruff format "$@" "${files[@]}"
}

dockerfile_lint() {
  local files
  mapfile -t files < <(tracked '*Dockerfile')
  hadolint "${files[@]}"
}

ansible_content_lint() {
  ansible-lint --offline --strict
  local project
  for project in examples/etcd examples/hybrid examples/visitors/ansible; do
    (cd "$project" && ansible-lint --offline --strict)
  done
}

# derived makes what a release has of config/, and validates the bundle. Of it bin/ensign is kept.
derived() {
  local dir
  dir=$(mktemp -d)
  make bundle DIST="$dir"
  rm -rf "$dir"
}

# prose has Vale read documents, help, comments, errors, log lines and names of specs.
prose() {
  local dir status=0
  dir=$(mktemp -d)
  go run ./hack/prose "$dir"
  tool vale --no-global --output=line docs examples/*/README.md hack/*/README.md README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md SECURITY.md "$dir" | sed -E "s#^$dir/((comments|messages|specs|all)/)?##; s#\.go\.(md|msg|cmt|spec):#.go:#" || status=$?
  rm -rf "$dir"
  return "$status"
}

check() {
  step "tracked files" go run ./hack/tracked
  step "golangci-lint" go_lint
  step "shell syntax" shell_lint
  step "ruff and mypy" python_lint
  step "yamllint" yamllint --strict .
  step "hadolint" dockerfile_lint
  step "ansible-lint" ansible_content_lint
  step "Vale" prose
  step "actionlint" tool actionlint -shellcheck= -pyflakes= # Not by what this machine happens to have.
  step "installer and bundle" derived
  step "site" hack/site/site.sh check
}

formats() {
  step "Go formats" tool golangci-lint fmt --diff
  step "Python formats" python_format --diff
}

modules() {
  local dir
  while read -r dir; do
    step "go mod tidy: $dir" go -C "$dir" mod tidy -diff
  done < <(tracked '*go.mod' | xargs -n 1 dirname)
}

fmt() {
  step "Go" tool golangci-lint fmt
  step "Python" python_format
}

for what in "$@"; do
  case $what in
  check | formats | modules | prose | fmt) "$what" ;;
  *)
    printf 'usage: hack/lint.sh check|formats|modules|prose|fmt\n' >&2
    exit 2
    ;;
  esac
done
