#!/usr/bin/env bash
# Runs tests.
#
#   hack/test.sh unit      tests of the packages, with the race detector where a
#                          C compiler is
#   hack/test.sh suites    tests below test/: real control plane, real Ansible
#
# TAGS=long adds the tests that take long. RUN=regexp chooses among the suites'
# packages.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$root"
source hack/steps.sh

tags=(-tags "${TAGS:-}")
# Minutes for one of the suites' packages.
limit=30
[[ ${TAGS:-} != *long* ]] || limit=90

have_compiler() { command -v "$(go env CC)" >/dev/null; }

unit() {
  local race=()
  if have_compiler; then
    race=(-race)
    export CGO_ENABLED=1
  else
    printf 'no C compiler: without the race detector\n'
  fi
  go test "${race[@]+"${race[@]}"}" "${tags[@]}" -timeout 10m ./cmd/... ./internal/... ./hack/...
}

# suite runs one package, so that its output is seen while it runs. Results are
# not cached: what they depend on is more than Go code.
suite() {
  local package=$1 flags=(-v) dependencies
  dependencies=$(go list "${tags[@]}" -test -deps "$package")
  if grep -qx github.com/onsi/ginkgo/v2 <<<"$dependencies"; then
    flags+=(-ginkgo.v -ginkgo.no-color)
  fi
  go test "${tags[@]}" -count=1 -timeout "${limit}m" "$package" "${flags[@]}" | without_starts
}

# without_starts leaves out that a test started: its end says the same and more.
without_starts() { awk '!/^=== (RUN|PAUSE|CONT|NAME) / { print; fflush() }'; }

suites() {
  local packages package number=0
  packages=$(go list "${tags[@]}" -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./test/... | grep -E "${RUN:-.}")
  for package in $packages; do
    number=$((number + 1))
    step "suite $number of $(wc -w <<<"$packages"): ${package#github.com/ensign-operator/ensign/}" suite "$package"
  done
}

# The suites start ansible-runner and kubectl by name.
export PATH=$root/.venv/bin:$root/bin/controlplane:$PATH

for what in "$@"; do
  case $what in
  unit) step "unit tests" unit ;;
  suites) suites ;;
  *)
    printf 'usage: hack/test.sh [unit] [suites]\n' >&2
    exit 2
    ;;
  esac
done
printf '==> all passed in %d s\n' "$SECONDS"
