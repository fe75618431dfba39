#!/usr/bin/env bash
# Builds the manager twice as the Dockerfile does, each time in a directory and with a build cache
# of its own, and fails when the files differ; then compiles it for the other architecture.
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
  tar -c go.mod go.sum cmd internal | tar -x -C "$1/src"
  manager "$1/src" "$1/manager" GOCACHE="$1/cache"
}

# manager SOURCE OUT NAME=VALUE… compiles; the flags are those of the Dockerfile.
manager() {
  env -C "$1" CGO_ENABLED=0 GOWORK=off GOFLAGS=-mod=readonly "${@:3}" go build -trimpath -buildvcs=false \
    -ldflags '-s -w -X main.version=test -X main.commit=0000000' -o "$2" ./cmd/manager
}

# The check is of the Dockerfile's flags only as long as they are the same.
same_flags() { grep -q 'go build -trimpath -buildvcs=false' Dockerfile && grep -q -- '-ldflags "-s -w -X main.version=' Dockerfile; }

compare() {
  sha256sum "$work/one/manager" "$work/another/place/manager"
  cmp "$work/one/manager" "$work/another/place/manager"
}

other() {
  local arch=arm64
  [[ $(go env GOARCH) != arm64 ]] || arch=amd64
  manager "$work/one/src" "$work/other" GOCACHE="$work/one/cache" GOARCH="$arch"
  go version -m "$work/other" | grep -P "\tbuild\tGOARCH=$arch$"
}

step 'the flags are those of the Dockerfile' same_flags
step 'first build' build "$work/one"
step 'second build' build "$work/another/place"
step 'they are identical' compare
step 'the other architecture compiles' other
