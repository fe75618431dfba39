#!/usr/bin/env bash
# Looks for known vulnerabilities in the contents of the image: in the Go code that its programs call, and in the
# Python packages of requirements.txt. Exit code 1: it found some. 2: it could not look everywhere.
#
#   hack/vulncheck/vulncheck.sh [PACKAGE…]    Go packages, by default ./cmd/...
#
# GOVULNDB=URL and OSV_URL=URL name mirrors of https://vuln.go.dev and https://api.osv.dev.
# OSV_IGNORE='ID …' leaves out findings in Python packages.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
cd "$root"
source hack/steps.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
result=0

# look FOUND COMMAND… runs a command, which ends with the code FOUND if it finds something.
look() {
  local found=$1 status=0
  shift
  "$@" || status=$?
  case $status in
  0) ;;
  "$found") result=$((result > 1 ? result : 1)) ;;
  *) result=2 ;;
  esac
}

# project writes requirements.txt as a project, of which uv audits the lock.
project() {
  local lines
  lines=$(sed -nE 's/^([A-Za-z0-9._-]+(\[[^]]*\])?==[^ ;\\]+).*/  "\1",/p' requirements.txt)
  [[ $(wc -l <<<"$lines") == "$(grep -c '^[A-Za-z0-9]' requirements.txt)" ]] || {
    printf 'vulncheck: a line of requirements.txt is not NAME==VERSION\n' >&2
    exit 2
  }
  printf '[project]\nname = "image"\nversion = "0"\nrequires-python = ">=%s"\ndependencies = [\n%s\n]\n' "$(<.python-version)" "$lines"
}

hack/tools/build.sh govulncheck
printf '==> Go: %s\n' "${*:-./cmd/...}"
look 3 ticking govulncheck bin/tools/govulncheck ${GOVULNDB:+-db "$GOVULNDB"} "${@:-./cmd/...}"

printf '==> Python: requirements.txt\n'
project >"$work/pyproject.toml"
read -ra ignored <<<"${OSV_IGNORE:-}"
look 1 .venv/bin/uv audit --project "$work" --no-python-downloads --system-certs --preview-features audit-command \
  ${OSV_URL:+--service-url "$OSV_URL"} "${ignored[@]/#/--ignore=}"

case $result in
1) printf 'vulncheck: update the modules in go.mod, and the packages in requirements.in (then hack/python.sh lock)\n' >&2 ;;
2) printf 'vulncheck: could not look everywhere; GOVULNDB and OSV_URL name mirrors of the databases\n' >&2 ;;
esac
exit "$result"
