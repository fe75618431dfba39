#!/usr/bin/env bash
# Builds the manager and chart-exec twice as the Dockerfile does, each time in a directory and with a build cache
# of its own, and fails when the files differ; then compiles them for the other architecture.
#
#   hack/image/reproducible.sh
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"
source hack/steps.sh

# build DIRECTORY copies what the Dockerfile copies, and runs its command, at another time and
# place: nothing that was compiled before is taken.
build() {
  mkdir -p "$1/src"
  tar -c go.mod go.sum cmd internal pkg | tar -x -C "$1/src"
  compile "$1/src" "$1" GOCACHE="$1/cache"
}

# compile SOURCE OUT NAME=VALUE… compiles both programs; the flags are those of the Dockerfile.
compile() {
  local flags=(-trimpath -buildvcs=false) settings=(CGO_ENABLED=0 GOWORK=off GOFLAGS=-mod=readonly "${@:3}")
  env -C "$1" "${settings[@]}" go build "${flags[@]}" -ldflags '-s -w -X main.version=test -X main.commit=0000000' -o "$2/manager" ./cmd/manager
  env -C "$1" "${settings[@]}" go build "${flags[@]}" -ldflags '-s -w' -o "$2/chart-exec" ./cmd/chart-exec
}

# The check is of the Dockerfile's flags only as long as they are the same.
same_flags() {
  [[ $(grep -c 'go build -trimpath -buildvcs=false' Dockerfile) == 2 ]]
  grep -q -- '-ldflags "-s -w -X main.version=' Dockerfile
  grep -q -- '-ldflags "-s -w" -o /out/chart-exec' Dockerfile
}

compare() {
  local program
  for program in manager chart-exec; do
    sha256sum "$work/one/$program" "$work/another/place/$program"
    cmp "$work/one/$program" "$work/another/place/$program"
  done
}

other() {
  local arch=arm64
  [[ $(go env GOARCH) != arm64 ]] || arch=amd64
  mkdir "$work/other"
  compile "$work/one/src" "$work/other" GOCACHE="$work/one/cache" GOARCH="$arch"
  [[ $(go version -m "$work/other" | grep -cP "\tbuild\tGOARCH=$arch$") == 2 ]]
}

step 'the flags are those of the Dockerfile' same_flags
step 'first build' build "$work/one"
step 'second build' build "$work/another/place"
step 'they are identical' compare
step 'the other architecture compiles' other
