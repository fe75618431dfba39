#!/usr/bin/env bash
# Runs specs of test/node on a cluster of kind, where a Docker engine is: on the published base images and MySQL
# servers, where hack/node has stand-ins. It takes docker, kind, kubectl and Go.
#
#   KEEP=1        leaves the cluster up; the next call takes it as it is
#   NODE_IMAGE=…  kind's image of the node, which chooses the version of Kubernetes
#   FOCUS=regexp  chooses specs
#
# Left out are specs that look into the node from outside, those of volumes that grow, which kind's provisioner
# cannot do, and those of images that hack/node alone makes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source hack/steps.sh

name=ensign-kind
skip='grows the server|moves the server to another version|examples/visitors'
# Go keeps its caches there. If it is not set, a shell knows it from the account.
export HOME=${HOME:-$(echo ~)}
dir=${XDG_CACHE_HOME:-$HOME/.cache}/ensign/kind
export KUBECONFIG=$dir/kubeconfig NODE_NAME=$name-control-plane NODE_WORK=$dir ENSIGN_NODE_IMAGE=ensign:kind

for program in docker kind kubectl go; do
  command -v "$program" >/dev/null || { printf 'kind: %s is not on PATH\n' "$program" >&2 && exit 77; }
done

cluster() { kind get clusters | grep -qx "$name" || kind create cluster --name "$name" --wait 3m ${NODE_IMAGE:+--image "$NODE_IMAGE"}; }

images() {
  make docker-build "IMG=$ENSIGN_NODE_IMAGE"
  docker pull mysql:8.4
  kind load docker-image --name "$name" "$ENSIGN_NODE_IMAGE" mysql:8.4
}

specs() { go test -tags node -count=1 -timeout 60m ./test/node -v -ginkgo.v -ginkgo.no-color -ginkgo.label-filter=short -ginkgo.skip="$skip" ${FOCUS:+-ginkgo.focus="$FOCUS"}; }

mkdir -p "$dir"
[[ -n ${KEEP:-} ]] || trap 'kind delete cluster --name "$name"' EXIT
step "a cluster of kind" cluster
step "images" images
step "test/node" specs
