#!/usr/bin/env bash
# Lints and formats the tree.
#
#   hack/lint.sh check      every linter; nothing is changed
#   hack/lint.sh formats    fails when a file is not formatted
#   hack/lint.sh modules    fails when a go.mod or go.sum is not tidy
#   hack/lint.sh fmt        formats
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$root"
source hack/steps.sh
export PATH=$root/.venv/bin:$PATH

golangci=$root/bin/tools/golangci-lint
module=hack/tools/golangci-lint

# golangci_built builds golangci-lint when it is missing or its pin has changed.
golangci_built() {
  local stamp=$golangci.stamp expected
  expected=$(go env GOVERSION && cat "$module/go.mod" "$module/go.sum")
  [[ ! -x $golangci || ! -f $stamp || $(<"$stamp") != "$expected" ]] || return 0
  printf 'building golangci-lint; about 2 minutes, once\n'
  rm -f "$stamp"
  (cd "$module" && GOFLAGS=-mod=readonly GOWORK=off CGO_ENABLED=0 \
    go build -buildvcs=false -ldflags '-s -w' -o "$golangci" tool)
  printf '%s' "$expected" >"$stamp"
}

# tracked prints the tree's files that match a pattern, the new ones too.
tracked() { git ls-files --cached --others --exclude-standard -- "$@" | while read -r file; do [[ ! -e $file ]] || printf '%s\n' "$file"; done; }

go_lint() { "$golangci" run ./...; }

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

ansible_content_lint() { ansible-lint --offline --strict; }

check() {
  step "golangci-lint: there" golangci_built
  step "golangci-lint" go_lint
  step "shell syntax" shell_lint
  step "ruff and mypy" python_lint
  step "yamllint" yamllint --strict .
  step "hadolint" dockerfile_lint
  step "ansible-lint" ansible_content_lint
}

formats() {
  step "golangci-lint: there" golangci_built
  step "Go formats" "$golangci" fmt --diff
  step "Python formats" python_format --diff
}

modules() {
  local dir
  for dir in . hack/controlplane hack/tools/helm "$module"; do
    step "go mod tidy: $dir" go -C "$dir" mod tidy -diff
  done
}

fmt() {
  step "golangci-lint: there" golangci_built
  step "Go" "$golangci" fmt
  step "Python" python_format
}

for what in "$@"; do
  case $what in
  check | formats | modules | fmt) "$what" ;;
  *)
    printf 'usage: hack/lint.sh check|formats|modules|fmt\n' >&2
    exit 2
    ;;
  esac
done
