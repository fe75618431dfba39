#!/usr/bin/env bash
# Applies config/ to a cluster and takes it away again.
#
#   hack/deploy.sh install|uninstall|deploy|undeploy
#
# The cluster is KUBECONFIG's when that is set, otherwise the running devcluster.
# IMG is the manager's image, OVERLAY a directory of config/overlays for deploy.
# uninstall and undeploy refuse while custom resources exist, unless FORCE=1, and give up
# after UNDEPLOY_TIMEOUT seconds, 120 if not given. They need bin/ensign. No file is written.
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

# serve applies the definitions, and waits until the API server serves their kinds.
serve() {
  local until
  kubectl apply -k config/crd
  for until in 'jsonpath={.status.conditions[0].type}' condition=Established; do # kubectl fails for a condition of an object that has none yet.
    kubectl kustomize config/crd | kubectl wait --for="$until" --timeout=60s -f - >/dev/null
  done
}

# remove deletes what directories have, unless custom resources exist.
remove() {
  local dir force=()
  [[ ${FORCE:-} != 1 ]] || force=(--force)
  for dir in "$@"; do
    echo ---
    kubectl kustomize "$dir"
  done | bin/ensign uninstall -f - --timeout "${UNDEPLOY_TIMEOUT:-120}s" "${force[@]}"
}

choose_cluster
case ${1:-} in
install) serve ;;
uninstall) remove config/crd ;;
deploy) rendered | kubectl apply -f - ;;
# The roles for all namespaces of this overlay, too. What others add goes with the namespace.
undeploy) remove config/default config/overlays/jobs/runs ;;
*) die "usage: hack/deploy.sh install|uninstall|deploy|undeploy" ;;
esac
