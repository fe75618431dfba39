#!/usr/bin/env bash
# Builds the embedded control plane into bin/controlplane: etcd, kube-apiserver,
# kube-controller-manager, kube-scheduler, kubectl, kwok, and stages.yaml, which
# tells kwok how its fake nodes, pods and volumes behave. The sources come from
# the Go module proxy, pinned byte for byte by this folder's go.sum.
#
# An up-to-date set is recognised by its stamp and left alone. A new set is made
# aside and moved into place whole, so that there is never half of one.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
root=$(cd "$here/../.." && pwd -P)
out=$root/bin/controlplane
stamp=$out/.stamp
inputs=(build.sh go.mod go.sum stages/kustomization.yaml stages/claim-expand.yaml)

# Where each program comes from, in the order in which they are built, and how
# many seconds a first build takes on two cores; later ones take a few.
tools=(
  "etcd                     25 go.etcd.io/etcd/server/v3"
  "kube-apiserver          160 k8s.io/kubernetes/cmd/kube-apiserver"
  "kube-controller-manager  50 k8s.io/kubernetes/cmd/kube-controller-manager"
  "kube-scheduler            5 k8s.io/kubernetes/cmd/kube-scheduler"
  "kubectl                  20 k8s.io/kubernetes/cmd/kubectl"
  "kwok                     10 sigs.k8s.io/kwok/cmd/kwok"
)

# The caller's flags and workspace are for the product's module, not for this
# one; without cgo the result does not depend on whether a C compiler is there.
export GOFLAGS=-mod=readonly GOWORK=off CGO_ENABLED=0

say() { printf 'controlplane: %s\n' "$*" >&2; }

die() {
  say "$@"
  exit 1
}

# expected_stamp prints what the stamp of a finished set holds.
expected_stamp() {
  (cd "$here" && go env GOVERSION GOOS GOARCH && cat "${inputs[@]}")
}

up_to_date() {
  [[ -f $stamp ]] && expected_stamp | cmp -s - "$stamp"
}

# ldflags gives Kubernetes the version that it reports and negotiates by.
ldflags() {
  local version major minor
  version=$(cd "$here" && go list -m -f '{{.Version}}' k8s.io/kubernetes)
  IFS=. read -r major minor _ <<<"${version#v}"
  printf -- '-s -w -X %s.gitVersion=%s -X %s.gitMajor=%s -X %s.gitMinor=%s' \
    k8s.io/component-base/version "$version" \
    k8s.io/component-base/version "$major" \
    k8s.io/component-base/version "$minor"
}

# progress reads what `go build -v` prints. Of downloads and compiled packages it
# shows the number, now and then; every other line is a fault and shown as it is.
progress() {
  awk -v name="$1" '
    function tell(what, n) { if (n % 200 == 0) { printf "controlplane:       %s: %d %s so far\n", name, n, what; fflush() } }
    /^go: downloading / { tell("modules downloaded", ++modules); next }
    /^[a-z][^ :]*$/     { tell("packages compiled", ++packages); next }
                        { print; fflush() }' >&2
}

# compile builds every program into the directory $1.
compile() {
  local into=$1 flags number=0 tool name seconds path began
  flags=$(ldflags)
  for tool in "${tools[@]}"; do
    read -r name seconds path <<<"$tool"
    began=$SECONDS
    number=$((number + 1))
    say "$number/${#tools[@]} $name (a first build takes about $seconds s)"
    (cd "$here" && go build -v -buildvcs=false -ldflags "$flags" -o "$into/$name" "$path") 2>&1 |
      progress "$name" || die "building $name failed; what go said stands above"
    say "$number/${#tools[@]} $name: done in $((SECONDS - began)) s"
  done
}

# stages renders kwok's stages, changed as stages/kustomization.yaml says, into
# the directory $1.
stages() {
  local into=$1 kwok
  kwok=$(cd "$here" && go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)
  [[ -n $kwok ]] || die "the source of kwok is not in the module cache"
  mkdir "$into/render"
  cp "$here"/stages/*.yaml "$into/render"
  cp -R "$kwok/kustomize/stage" "$into/render/stage"
  "$into/kubectl" kustomize "$into/render" >"$into/stages.yaml"
  chmod -R u+w "$into/render"
  rm -rf "$into/render"
}

build() {
  local began=$SECONDS new=$root/bin/controlplane.new
  say "building the embedded control plane into $out; about 5 minutes the first time, seconds afterwards"
  if [[ -e $new ]]; then # What an interrupted build left.
    chmod -R u+w "$new"
    rm -rf "$new"
  fi
  mkdir -p "$new"
  compile "$new"
  stages "$new"
  expected_stamp >"$new/.stamp"
  rm -rf "$out"
  mv "$new" "$out"
  say "ready after $((SECONDS - began)) s: $out"
}

# Two calls at once must not build into the same directory.
exclusively() {
  mkdir -p "$root/bin"
  if command -v flock >/dev/null; then
    exec 9>"$root/bin/.controlplane.lock"
    flock 9
  fi
}

command -v go >/dev/null || die "go is not on PATH; install Go 1.26 or later"
up_to_date && exit 0
exclusively
up_to_date || build
