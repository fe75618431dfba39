#!/usr/bin/env bash
# Runs every fuzz target, one after the other, and prints what came of each.
#
#   hack/fuzz.sh                  every target, FUZZTIME each (20s by default)
#   hack/fuzz.sh Decode proxy     only targets whose package or name contains one of these
#   hack/fuzz.sh --list           names the targets
#   hack/fuzz.sh --help           this text
#
# FUZZTIME is a duration (90s, 10m) or a number of executions (5000x).
# The exit status is 1 when a target fails. The input that broke it is then kept
# below testdata/fuzz of its package, where every later `go test` replays it:
# commit it with the fix.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$root"

fuzztime=${FUZZTIME:-20s}
module=$(go list -m)
found=$(go env GOCACHE)/fuzz # where go test itself keeps the inputs that it finds
log=
trap 'rm -f "$log"' EXIT
export CGO_ENABLED=${CGO_ENABLED:-0}

usage() { sed -n '2,/^set /{/^set /d; s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"; }

# targets prints "package name" of every fuzz target, sorted.
targets() {
  git ls-files --cached --others --exclude-standard -- '*_test.go' | xargs -d '\n' grep -HoE '^func Fuzz[A-Za-z0-9_]*' |
    sed -E 's#^(.*)/[^/]*:func (.*)#./\1 \2#' | sort -u
}

# chosen keeps the targets that one of the words chooses; all where there is none.
chosen() {
  local package name word
  targets | while read -r package name; do
    (($#)) || printf '%s %s\n' "$package" "$name"
    for word in "$@"; do
      [[ "$package $name" != *"$word"* ]] || { printf '%s %s\n' "$package" "$name" && break; }
    done
  done
}

# last PATTERN FILE prints what the pattern's group matched last, 0 if it never did.
last() { { sed -nE "s/.*$1.*/\1/p" "$2" | tail -n 1; } | grep . || printf '0\n'; }

# fuzz PACKAGE NAME runs a target and prints its row, and after a failure how to
# see it again.
fuzz() {
  local package=$1 name=$2 result=ok status=0 file
  # Only what is ours is compiled to guide the search. With -fuzz everything that
  # it imports is compiled anew for that, which takes minutes with Kubernetes' client.
  go test "$package" -v -timeout 0 -run='^$' -gcflags="$module/...=-d=libfuzzer" -args -test.fuzz="^$name\$" \
    -test.fuzztime="$fuzztime" -test.fuzzminimizetime=200x -test.fuzzcachedir="$found/$module/${package#./}" \
    >"$log" 2>&1 || status=$?
  ((status == 0)) || result=FAILED
  printf '%-28s %-26s %12s %11s  %s\n' "${package#./internal/}" "$name" "$(last 'execs: ([0-9]+)' "$log")" \
    "$(last 'new interesting: ([0-9]+)' "$log")" "$result"
  ((status)) || return 0
  sed 's/^/    /' "$log"
  file=$(last 'Failing input written to ([^ ]+)' "$log")
  if [[ $file != 0 ]]; then
    printf '    The input: %s/%s\n    Replay it: go test %s -run=%s/%s\n' "${package#./}" "$file" "$package" "$name" "${file##*/}"
  else
    printf '    The input is one of the corpus. Replay it: go test %s -run=%s\n' "$package" "$(last 'seed corpus entry: ([^ ]+)' "$log")"
  fi
  return 1
}

main() {
  case ${1:-} in
  -h | --help) usage && return 0 ;;
  --list) targets && return 0 ;;
  -*) usage >&2 && return 2 ;;
  esac
  local rows package name failed=0
  rows=$(chosen "$@")
  [[ -n $rows ]] || { printf 'no fuzz target matches %s; hack/fuzz.sh --list names them\n' "$*" >&2 && return 2; }
  log=$(mktemp)
  printf '%-28s %-26s %12s %11s  %s\n' package target executions 'new inputs' result
  while read -r package name; do
    fuzz "$package" "$name" || failed=$((failed + 1))
  done <<<"$rows"
  printf '==> %d targets, %s each, %d failed, %d s\n' "$(wc -l <<<"$rows")" "$fuzztime" "$failed" "$SECONDS"
  ((failed == 0))
}

main "$@"
