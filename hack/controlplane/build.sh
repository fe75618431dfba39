#!/usr/bin/env bash
# Builds the embedded control plane into bin/controlplane: etcd, kube-apiserver,
# kube-controller-manager, kube-scheduler, kubectl, kwok, and stages.yaml, which
# tells kwok how its fake nodes, pods and volumes behave. The sources come from
# the Go module proxy, pinned byte for byte by this folder's go.sum.
#
# A program that KUBEBUILDER_ASSETS or PATH has, in the minor version that go.mod wants
# or a newer one, is taken in place of building it: the set then has a link to it.
# `build.sh list` says which are taken and which are built, and builds nothing.
#
# `build.sh 1.36` builds the servers of an older minor version, which has a module of its own here, into
# bin/controlplane-1.36, with etcd, kubectl and kwok of the set above: `make test-matrix` tests on it.
#
# A set is up to date while its stamp says that it was made of today's pins by today's
# commands, and each program that it took from elsewhere is still there and new enough.
# What PATH has now does not matter: another shell must not build everything anew. A new
# set is made aside and moved into place whole, so that there is never half of one.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
root=$(cd "$here/../.." && pwd -P)
out=$root/bin/controlplane
stamp=$out/.stamp
minor=''
inputs=(go.mod go.sum stages/kustomization.yaml stages/claim-expand.yaml)

# Where each program comes from.
tools=(
  "etcd                    go.etcd.io/etcd/server/v3"
  "kube-apiserver          k8s.io/kubernetes/cmd/kube-apiserver"
  "kube-controller-manager k8s.io/kubernetes/cmd/kube-controller-manager"
  "kube-scheduler          k8s.io/kubernetes/cmd/kube-scheduler"
  "kubectl                 k8s.io/kubernetes/cmd/kubectl"
  "kwok                    sigs.k8s.io/kwok/cmd/kwok"
)

# The caller's flags and workspace are for the product's module, not for this
# one; without cgo the result does not depend on whether a C compiler is there.
export GOFLAGS=-mod=readonly GOWORK=off CGO_ENABLED=0

# The functions below are the same for an older version; what they work on is not.
older() {
  minor=$1
  top=$here here=$here/v$1
  [[ -f $here/go.mod ]] || die "there is no Kubernetes $1 here; there are: $(cd "$top" && echo v*/ | tr -d v/)"
  out=$root/bin/controlplane-$1
  stamp=$out/.stamp
  inputs=(go.mod go.sum)
  tools=("${tools[@]:1:3}") # The servers of Kubernetes.
}

say() { printf 'controlplane: %s\n' "$*" >&2; }

die() {
  say "$@"
  exit 1
}

# wanted prints the version of a program's module, 1.37.2 for instance.
wanted() {
  local module=k8s.io/kubernetes
  case $1 in
  etcd) module=go.etcd.io/etcd/server/v3 ;;
  kwok) module=sigs.k8s.io/kwok ;;
  esac
  (cd "$here" && go list -m -f '{{slice .Version 1}}' "$module")
}

# version prints what version the program $1 at $2 says it has; nothing when it says none.
version() {
  local ask=(--version)
  [[ $1 != kubectl ]] || ask=(version --client)
  timeout 10 "$2" "${ask[@]}" 2>/dev/null | sed -nE '1s/^.*[vV]ersion:? v?|^Kubernetes v//; s/^([0-9]+\.[0-9]+\.[0-9]+).*$/\1/p' | head -n 1 || true
}

# not_older reports whether a version's minor version is the wanted one or newer.
not_older() {
  local major minor wanted_major wanted_minor
  IFS=. read -r major minor _ <<<"$1"
  IFS=. read -r wanted_major wanted_minor _ <<<"$2"
  ((major > wanted_major || (major == wanted_major && minor >= wanted_minor)))
}

# find_tools sets found: for each program that is there already "NAME VERSION PATH".
# The set itself is often on PATH, and does not count.
find_tools() {
  local tool name dirs dir there want
  found=()
  [[ -z $minor ]] || return 0 # Another version than that one is of no use.
  IFS=: read -ra dirs <<<"${KUBEBUILDER_ASSETS:-}:$PATH"
  for tool in "${tools[@]}"; do
    read -r name _ <<<"$tool"
    want=
    for dir in "${dirs[@]}"; do
      [[ $dir == /* && -f $dir/$name && -x $dir/$name && ! $dir -ef $out ]] || continue
      there=$(version "$name" "$dir/$name")
      want=${want:-$(wanted "$name")}
      [[ -n $there ]] && not_older "$there" "$want" || continue
      found+=("$name $there $dir/$name")
      break
    done
  done
}

# place prints "VERSION PATH" of a program that was found.
place() {
  local entry
  for entry in "${found[@]+"${found[@]}"}"; do
    [[ $entry != "$1 "* ]] || printf '%s' "${entry#* }"
  done
}

# list says where each program comes from.
list() {
  local tool name taken
  for tool in "${tools[@]}"; do
    read -r name _ <<<"$tool"
    taken=$(place "$name")
    if [[ -n $taken ]]; then
      say "$name: taken, ${taken%% *} at ${taken#* }"
    else
      say "$name: built, $(wanted "$name")"
    fi
  done
}

# expected_stamp prints what the stamp of a finished set holds. The functions without their
# comments: a word of explanation builds nothing anew.
expected_stamp() {
  (cd "$here" && go env GOVERSION GOOS GOARCH && cat "${inputs[@]}")
  printf '%s\n' "${tools[@]}"
  declare -f ldflags compile stages
}

up_to_date() {
  local tool name
  [[ -f $stamp ]] && expected_stamp | cmp -s - "$stamp" || return 1
  for tool in "${tools[@]}"; do
    read -r name _ <<<"$tool"
    [[ -x $out/$name ]] || return 1
    [[ ! -L $out/$name ]] || not_older "$(version "$name" "$out/$name")" "$(wanted "$name")" || return 1
  done
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

# compile links or builds every program into the directory $1. One `go build` makes
# them all, so that no core waits while another links. Without inlining, which the manager's
# own packages and what they share keep, Kubernetes' compile in two thirds of the time.
compile() {
  local into=$1 flags tool name path taken packages=()
  flags=$(ldflags)
  for tool in "${tools[@]}"; do
    read -r name path <<<"$tool"
    taken=$(place "$name")
    if [[ -n $taken ]]; then
      ln -s "${taken#* }" "$into/$name"
    else
      packages+=("$path")
    fi
  done
  ((${#packages[@]})) || return 0
  (cd "$here" && "$root/hack/compile/compile.sh" controlplane -buildvcs=false -gcflags 'k8s.io/kubernetes/...=-l' \
    -ldflags "$flags" -o "$into/" "${packages[@]}") || die "building failed; what go said stands above"
  [[ ! -e $into/server ]] || mv "$into/server" "$into/etcd" # Go names it after its folder.
}

# stages renders kwok's stages, changed as stages/kustomization.yaml says, into
# the directory $1.
stages() {
  local into=$1 kwok
  (cd "$here" && go mod download sigs.k8s.io/kwok)
  kwok=$(cd "$here" && go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)
  [[ -n $kwok ]] || die "the source of kwok is not in the module cache"
  mkdir "$into/render"
  cp "$here"/stages/*.yaml "$into/render"
  cp -R "$kwok/kustomize/stage" "$into/render/stage"
  "$into/kubectl" kustomize "$into/render" >"$into/stages.yaml"
  chmod -R u+w "$into/render"
  rm -rf "$into/render"
}

# borrow completes a set of an older version.
borrow() {
  "$top/build.sh"
  ln -s ../controlplane/{etcd,kubectl,kwok,stages.yaml} "$1/"
}

build() {
  local began=$SECONDS new=$out.new
  say "putting the embedded control plane into $out; the first time, two cores compile all of it in 5 to 12 minutes"
  list
  if [[ -e $new ]]; then # What an interrupted build left.
    chmod -R u+w "$new"
    rm -rf "$new"
  fi
  mkdir -p "$new"
  compile "$new"
  if [[ -n $minor ]]; then borrow "$new"; else stages "$new"; fi
  expected_stamp >"$new/.stamp"
  rm -rf "$out"
  mv "$new" "$out"
  say "ready after $((SECONDS - began)) s: $out"
}

# Two calls at once must not build into the same directory.
exclusively() {
  mkdir -p "$root/bin"
  if command -v flock >/dev/null; then
    exec 9>"$root/bin/.controlplane$minor.lock"
    flock 9
  fi
}

command -v go >/dev/null || die "go is not on PATH; install Go 1.26 or later"
case ${1:-} in
'' | list) ;;
[0-9]*) older "$1" ;;
*) die "usage: build.sh [list | MINOR]" ;;
esac
if [[ ${1:-} == list ]]; then
  find_tools
  list
  exit
fi
up_to_date && exit 0
exclusively
if ! up_to_date; then
  find_tools
  build
fi
