#!/usr/bin/env bash
# Runs tests.
#
#   hack/test.sh unit      tests of the packages; with RACE=1 or TAGS=long, with the race detector
#                          where a C compiler is: it needs builds of its own of all packages
#   hack/test.sh collections
#                          tests in Python: the modules of collections/, and the
#                          servers of warm runs
#   hack/test.sh suites    tests below test/: real control plane, real Ansible;
#                          with others before, these run beside
#   hack/test.sh long      the specs with the label "long", which "suites" leaves out; with UNTIL=seconds
#                          no suite of them begins later than that, and those left out are named
#   hack/test.sh cold      the suites again that say most of runs, with --warm=false;
#                          in the others runs are warm, as they are by default
#   hack/test.sh jobs      those that say most of roles again, with runs in Jobs: agents
#                          execute them, on a node of the test's
#
# TAGS=long adds the tests that take long: those with this build tag, and the specs with this label.
# RUN=regexp chooses among the suites' packages. AT_ONCE=n runs n of them at once, 3 if not given:
# suites wait more than they work. With TAGS=long one runs at a time, because some of it measures.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$root"
source hack/steps.sh

module=github.com/ensign-operator/ensign
# golangci-lint vets, with all that these depend on. Without debug data, which nobody reads, a test's program
# links in a third of the time.
tags=(-tags "${TAGS:-}" -vet=off -ldflags='-s -w')
# After these minutes a package of tests ends that hangs. It is no bound for slow machines, on
# which specs end by their own timeout (test/harness/timeout.go) long before.
limit=360 at_once=${AT_ONCE:-3}
# The filter of specs by their labels; an empty one is for all of them.
export LABELS=${LABELS-!long}
[[ ${TAGS:-} != *long* ]] || LABELS='' at_once=${AT_ONCE:-1}

have_compiler() { command -v "$(go env CC)" >/dev/null; }

unit() {
  local race=()
  if [[ -z ${RACE:-} && ${TAGS:-} != *long* ]]; then
    printf 'without the race detector: RACE=1 adds it\n'
  elif have_compiler; then
    race=(-race)
    export CGO_ENABLED=1
  else
    printf 'no C compiler: without the race detector\n'
  fi
  go test "${race[@]+"${race[@]}"}" "${tags[@]}" -timeout "${limit}m" ./cmd/... ./internal/... ./pkg/...
  go test "${tags[@]}" -timeout "${limit}m" ./hack/... # They do one thing after the other.
  # Modules of their own.
  local module
  for module in hack/bundle examples/visitors/app examples/visitors/go; do
    CGO_ENABLED=0 go -C "$module" test -timeout "${limit}m" ./...
  done
}

# collections runs pytest once for each search path: in one interpreter the modules
# of collections would be found by Ansible in the tests of the servers.
collections() {
  pytest --quiet collections roles examples hack/site
  pytest --quiet internal/ansible/warm/server/tests
  pytest --quiet internal/ansible/runner/program/tests
}

# suite runs one package, or the unit tests or those in Python, so that its output is seen while it
# runs. Results are not cached: what they depend on is more than Go code.
suite() {
  local package=$1 flags=(-v) dependencies
  if [[ $package == unit || $package == collections ]]; then
    "$package"
    return
  fi
  dependencies=$(go list -tags "${TAGS:-}" -test -deps "$package")
  if grep -qx github.com/onsi/ginkgo/v2 <<<"$dependencies"; then
    flags+=(-ginkgo.v -ginkgo.no-color -ginkgo.timeout="${limit}m" -ginkgo.label-filter="$LABELS")
  fi
  go test "${tags[@]}" -count=1 -timeout "${limit}m" "$package" "${flags[@]}" | without_starts
}

# without_starts leaves out that a test started: its end says the same and more.
# Not awk: some hold back what they read, and with it the progress.
without_starts() { sed -u -E '/^=== (RUN|PAUSE|CONT|NAME) /d'; }

# order is of those that begin first. The quickstart says within three minutes whether the product works: a new user's
# first steps, executed. Then those that take longest, so that none is left over at the end.
order='quickstart unit contract children charts author visitors runs/warm safevars mysqlcluster deploy etcd runs check runs/markers mysqlbackup'

suites() {
  local packages number=0 total package
  packages=$(go list -tags "${TAGS:-}" -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./test/...) || return
  packages=$(grep -E "${RUN:-.}" <<<"$packages") || {
    printf 'no package below test/ matches RUN=%s\n' "$RUN" >&2
    return 1
  }
  local ordered=' ' one
  for one in $order; do
    grep -qxF "$one" <<<"${beside// /$'\n'}" || one=$(grep -xF "$module/test/$one" <<<"$packages") || continue
    ordered+="$one "
  done
  for one in $beside $packages; do
    [[ $ordered == *" $one "* ]] || ordered+="$one "
  done
  packages=$ordered
  total=$(wc -w <<<"$packages")
  if ((total == 1 || at_once == 1)); then
    for package in $packages; do
      number=$((number + 1))
      step "suite $number of $total: ${package#"$module"/}" suite "$package"
    done
    return
  fi
  failures=$(mktemp)
  export failures
  for package in $packages; do
    number=$((number + 1))
    printf '%s\0' "suite $number of $total: ${package#"$module"/}" "$package"
  done | xargs -0 -n 2 -P "$at_once" hack/test.sh aside || {
    printf '==> FAILED: suites; their whole output is above\n' >&2
    cat "$failures" >&2
    rm -f "$failures"
    return 1
  }
  rm -f "$failures"
}

# long runs what make test leaves out of suites. test/node chooses among its labels itself.
long() {
  LABELS=long
  [[ -z ${UNTIL:-} ]] || export deadline=$(($(date +%s) + UNTIL))
  RUN="/($(grep -rl --include='*_test.go' 'Label("long")' test | grep -v '^test/node/' | xargs -n 1 dirname | sort -u | paste -sd '|'))\$" suites
}

cold() {
  export ENSIGN_TEST_WARM=false
  TAGS='' RUN='/test/(contract|runs)$' hack/test.sh suites
  step "fault plans with the real Ansible, cold" \
    go test -tags long -count=1 -timeout "${limit}m" ./test/faults -v -ginkgo.v -ginkgo.no-color -ginkgo.timeout="${limit}m" -ginkgo.focus='the real Ansible'
}

jobs() {
  export ENSIGN_TEST_EXECUTOR=job
  TAGS='' RUN='/test/(accounts|runs|runs/markers|runs/outcomes|runs/secrets|safevars)$' hack/test.sh suites
  step "finalizers with runs in Jobs" \
    go test -count=1 -timeout "${limit}m" ./test/contract -v -ginkgo.v -ginkgo.no-color -ginkgo.timeout="${limit}m" -ginkgo.focus='§6 (finalizer|deleted)'
}

# aside runs a suite beside others, and shows what it printed in one piece when it
# is over.
aside() {
  local output status
  if (($(date +%s) > ${deadline:-$(date +%s)})); then
    printf '==> not begun, because the time is over: %s\n' "$1"
    return
  fi
  output=$(mktemp)
  printf '==> begun: %s\n' "$1"
  set +e # As in step.
  (step "$1" suite "$2") >"$output" 2>&1
  status=$?
  set -e
  if command -v flock >/dev/null; then
    flock hack/test.sh cat "$output"
  else
    cat "$output"
  fi
  ((status == 0)) || recall "$1" "$output" >>"$failures"
  rm -f "$output"
  return "$status"
}

# recall repeats what a suite said where it first failed, for the end of all output.
recall() {
  printf '==> FAILED: %s\n' "$1"
  grep -m 2 -B 8 -A 8 -E -e '--- FAIL|\[FAILED\]|\[build failed\]|^panic:|^E  ' "$2" || tail -n 20 "$2"
}

# The suites start ansible-runner and kubectl by name.
export PATH=$root/.venv/bin:$root/bin/controlplane:$PATH

if [[ ${1:-} == aside ]]; then
  aside "$2" "$3"
  exit
fi
beside=
for what in "$@"; do
  case $what in
  unit | collections)
    if ((at_once > 1)) && [[ " $* " == *' suites '* ]]; then
      beside+=" $what"
    else
      step "$what tests" "$what"
    fi
    ;;
  suites) suites ;;
  long) long ;;
  cold) cold ;;
  jobs) jobs ;;
  *)
    printf 'usage: hack/test.sh [unit] [collections] [suites] [long] [cold] [jobs]\n' >&2
    exit 2
    ;;
  esac
done
printf '==> all passed in %d s\n' "$SECONDS"
