#!/usr/bin/env bash
# Builds the node's programs into $NODE_WORK/bin, each set when it is missing or its pin
# has changed. The sources come from the Go module proxy, pinned byte for byte by the
# go.sum of their modules. The control plane is that of `make controlplane`.
#   build.sh etcd   builds the programs of the images of etcd instead
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# As hack/controlplane/build.sh: the packages that both need are compiled once.
export GOFLAGS=-mod=readonly GOWORK=off CGO_ENABLED=0

compile() { "$root/hack/compile/compile.sh" "$@"; }

# stamp_of MODULE COMMAND prints what a set is made of, and by which function of this file.
stamp_of() { go env GOVERSION && cat "$1/go.mod" "$1/go.sum" && find "$1" -name '*.go' -exec cat {} + && declare -f "$2"; }

# set_of NAME MODULE COMMAND runs the command in the module unless the set is up to date.
set_of() {
  local name=$1 module=$2 command=$3 began=$SECONDS
  ! stamp_of "$module" "$command" | cmp -s - "$bin/.$name.stamp" || return 0
  say "building $name"
  rm -f "$bin/.$name.stamp"
  (cd "$module" && "$command") || die "building $name failed, see above"
  stamp_of "$module" "$command" >"$bin/.$name.stamp"
  say "built $name in $((SECONDS - began)) s"
}

kubernetes() {
  local version major minor x=k8s.io/component-base/version
  version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
  IFS=. read -r major minor _ <<<"${version#v}"
  # Without inlining, as the control plane: else what both need is compiled twice.
  compile kubelet -buildvcs=false -gcflags 'k8s.io/kubernetes/...=-l' -ldflags "-s -w -X $x.gitVersion=$version -X $x.gitMajor=$major -X $x.gitMinor=$minor" \
    -o "$bin/" k8s.io/kubernetes/cmd/kubelet k8s.io/kubernetes/cmd/kube-proxy
}

# Without the snapshotters that need libraries in C, or that this node does not use.
containerd() { compile containerd -buildvcs=false -tags 'no_btrfs no_devmapper no_zfs no_aufs' -ldflags '-s -w' -o "$bin/" tool; }

addons() { compile addons -buildvcs=false -ldflags '-s -w' -o "$bin/" ./...; }

# In a directory of the version: three programs of the same names.
etcd() { compile etcd -buildvcs=false -ldflags '-s -w' -o "$bin/etcd-$(basename "$PWD")/" tool; }

[[ -x $controlplane/kube-apiserver ]] || die "there is no $controlplane: run \"make controlplane\""
mkdir -p "$bin"
if [[ ${1:-} == etcd ]]; then
  for module in "$here"/etcd/*/; do
    mkdir -p "$bin/etcd-$(basename "$module")"
    set_of "etcd-$(basename "$module")" "${module%/}" etcd
  done
  exit
fi
set_of kubelet "$root/hack/controlplane" kubernetes
set_of containerd "$here/containerd" containerd
set_of addons "$here/addons" addons
