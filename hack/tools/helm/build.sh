#!/usr/bin/env bash
# Builds helm into bin/tools, when it is missing or its pin has changed. The sources
# come from the Go module proxy, pinned byte for byte by this folder's go.sum.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
root=$(cd "$here/../../.." && pwd -P)
helm=$root/bin/tools/helm
cd "$here"
expected=$(go env GOVERSION && cat go.mod go.sum)
[[ ! -x $helm || ! -f $helm.stamp || $(<"$helm.stamp") != "$expected" ]] || exit 0
printf 'building helm; about 3 minutes, once\n'
rm -f "$helm.stamp"
GOFLAGS=-mod=readonly GOWORK=off CGO_ENABLED=0 go build -buildvcs=false -ldflags '-s -w' -o "$helm" tool
printf '%s' "$expected" >"$helm.stamp"
