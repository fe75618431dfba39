#!/usr/bin/env bash
# Builds a tool into bin/tools, when it is missing or its pin has changed.
#
#   hack/tools/build.sh NAME    NAME is a folder here, a module of its own: the tool's
#                               dependencies are not the product's
#
# The sources come from the Go module proxy, pinned byte for byte by the folder's go.sum. Build
# tags are in the folder's file tags, if it has one.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
name=${1:?usage: hack/tools/build.sh NAME}
out=$(cd "$here/../.." && pwd -P)/bin/tools/$name
[[ -f $here/$name/go.mod ]] || {
  printf 'hack/tools/build.sh: there is no tool %s: hack/tools/%s/go.mod is missing\n' "$name" "$name" >&2
  exit 2
}
cd "$here/$name"
tags=
[[ ! -f tags ]] || tags=$(<tags)
expected=$(go env GOVERSION && printf '%s' "${tags:+$tags$'\n'}" && cat go.mod go.sum)
[[ ! -x $out || ! -f $out.stamp || $(<"$out.stamp") != "$expected" ]] || exit 0
printf 'building %s; 1 to 6 minutes on two cores, once\n' "$name"
rm -f "$out.stamp"
GOFLAGS=-mod=readonly GOWORK=off CGO_ENABLED=0 ../../compile/compile.sh "$name" -buildvcs=false -tags "$tags" -ldflags '-s -w' -o "$out" tool
printf '%s' "$expected" >"$out.stamp"
