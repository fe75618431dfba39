#!/usr/bin/env bash
# Applies config/ to a cluster and takes it away again.
#
#   hack/deploy.sh install|uninstall|deploy|undeploy
#
# The cluster is KUBECONFIG's when that is set, otherwise the running devcluster.
# IMG is the manager's image, OVERLAY a directory of config/overlays for deploy.
# uninstall and undeploy refuse while custom resources exist, unless FORCE=1, which
# gives up after PATIENCE seconds, 60 if not given. No file is written.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$root"

die() {
  printf 'deploy: %s\n' "$*" >&2
  exit 1
}

kubectl() { command "${KUBECTL:-kubectl}" "$@"; }

# choose_cluster never falls back on ~/.kube/config: a cluster must be named.
choose_cluster() {
  if [[ -z ${KUBECONFIG:-} ]]; then
    [[ -f .dev/kubeconfig ]] || die "no cluster: set KUBECONFIG, or run \"make devcluster\" in another terminal"
    export KUBECONFIG=$root/.dev/kubeconfig
  fi
  command -v "${KUBECTL:-kubectl}" >/dev/null || die "there is no ${KUBECTL:-kubectl}: run \"make controlplane\", or name yours with KUBECTL"
  kubectl version >/dev/null 2>&1 || die "the cluster of $KUBECONFIG does not answer"
}

# rendered prints what is deployed: config/default or an overlay, with image IMG in
# the place of the one in config/manager.
rendered() {
  local dir=config/default text
  if [[ -n ${OVERLAY:-} ]]; then
    dir=config/overlays/$OVERLAY
    [[ -f $dir/kustomization.yaml ]] || die "OVERLAY=$OVERLAY: there is no $dir. There are: $(cd config/overlays && printf '%s ' *)"
  fi
  text=$(kubectl kustomize "$dir")
  grep -q '^ *image: ensign:dev$' <<<"$text" || die "$dir has no container with image ensign:dev: see config/manager/kustomization.yaml"
  sed "s|^\( *image: \)ensign:dev$|\1${IMG:-ensign:dev}|" <<<"$text"
}

# defined prints the definition's name if there is one.
defined() { kubectl get crd "$1" --ignore-not-found --output name; }

# custom_resources prints a line for each: KIND NAMESPACE/NAME [its finalizers]. It
# fails where they cannot be listed. (set -e does not hold in it: callers test it.)
custom_resources() {
  local definitions definition found
  definitions=$(kubectl kustomize config/crd | awk '/^kind: CustomResourceDefinition/ { crd = 1 } crd && /^  name: / { print $2; crd = 0 }') || return
  for definition in $definitions; do
    found=$(defined "$definition") || return
    [[ -n $found ]] || continue
    kubectl get "$definition" --all-namespaces \
      --output 'jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name} {.metadata.finalizers}{"\n"}{end}' && continue
    found=$(defined "$definition") || return
    [[ -z $found ]] || return 1 # A kind that has gone meanwhile has no objects.
  done
}

# refuse_leftovers: with the definitions all custom resources are deleted, and with
# the manager the only one who removes their finalizers.
refuse_leftovers() {
  local left
  left=$(custom_resources) || die "the custom resources cannot be listed, so nothing was removed"
  [[ -z $left ]] && return
  die "these custom resources exist; nothing was removed:
$left
Delete them while the manager runs (kubectl delete KIND NAME -n NAMESPACE), then try again.
FORCE=1 deletes them with their kinds: no finalizer's content runs, and what it would delete stays."
}

# serve applies the definitions, and waits until the API server serves their kinds.
serve() {
  local until
  kubectl apply -k config/crd
  for until in 'jsonpath={.status.conditions[0].type}' condition=Established; do # kubectl fails for a condition of an object that has none yet.
    kubectl kustomize config/crd | kubectl wait --for="$until" --timeout=60s -f - >/dev/null
  done
}

# our_finalizers prints the names that watches.yaml gives.
our_finalizers() { sed -nE '/^ *(- )?finalizer:/,/name:/ s/.*name: *"?([^",} ]+).*/\1/p' watches.yaml; }

# release takes our finalizers off all custom resources; those of others stay.
release() {
  local kind object finalizers ours index
  while read -r kind object finalizers; do
    for ours in $(our_finalizers); do
      index=$(tr -d '[]"' <<<"$finalizers" | tr , '\n' | grep -nxF "$ours" | cut -d : -f 1) || continue
      printf 'without its finalizer %s: %s %s\n' "$ours" "$kind" "$object"
      kubectl patch "$kind" "${object#*/}" --namespace "${object%/*}" --type json --output name --patch \
        "[{\"op\": \"test\", \"path\": \"/metadata/finalizers/$((index - 1))\", \"value\": \"$ours\"},
          {\"op\": \"remove\", \"path\": \"/metadata/finalizers/$((index - 1))\"}]" >/dev/null || true # It may be gone.
    done
  done < <(custom_resources)
}

# remove deletes what a directory of config/ has. By force it looks again and again
# for finalizers, because a manager elsewhere gives them to custom resources until
# these are being deleted.
remove() {
  local said=
  if [[ ${FORCE:-} != 1 ]]; then
    refuse_leftovers
    kubectl delete -k "$1" --ignore-not-found
    return
  fi
  # The manager first, so that no finalizer's content begins that cannot end.
  [[ $1 == config/crd ]] || kubectl delete deployment ensign-manager --namespace ensign-system --ignore-not-found --cascade foreground --timeout 2m
  kubectl delete -k "$1" --ignore-not-found --wait=false
  while ((SECONDS < ${PATIENCE:-60})); do
    release
    # Only the kinds have to be looked at again. For all objects of config/ kubectl, which
    # limits its own requests, takes more than these seconds even where none is left.
    if said=$(kubectl delete -k config/crd --ignore-not-found --timeout 5s 2>&1); then
      kubectl delete -k "$1" --ignore-not-found --timeout 2m
      return
    fi
  done
  die "the removal has begun, and something holds it up: $said
These custom resources are left. Their finalizers are not of watches.yaml, so others have to remove them:
$(custom_resources)"
}

choose_cluster
case ${1:-} in
install) serve ;;
uninstall) remove config/crd ;;
deploy) rendered | kubectl apply -f - ;;
undeploy)
  remove config/default
  # The roles for all namespaces of this overlay. What others add went with the namespace.
  kubectl delete -k config/overlays/jobs/runs --ignore-not-found
  ;;
*) die "usage: hack/deploy.sh install|uninstall|deploy|undeploy" ;;
esac
