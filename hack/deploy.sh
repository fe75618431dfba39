#!/usr/bin/env bash
# Applies config/ to a cluster and takes it away again.
#
#   hack/deploy.sh install|uninstall|deploy|undeploy
#
# The cluster is KUBECONFIG's when that is set, otherwise the running devcluster.
# IMG is the manager's image. Tracked files are not edited.
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

# overlay writes a kustomization that is config/default with image IMG, and
# prints its directory.
overlay() {
  local image=${IMG:-ensign:dev} dir=.dev/deploy name reference last
  last=${image##*/} # A colon before the last slash is a registry's port.
  case $last in
  *@*) name=${image%@*} reference="digest: ${image##*@}" ;;
  *:*) name=${image%:*} reference="newTag: \"${image##*:}\"" ;;
  *) name=$image reference="newTag: latest" ;;
  esac
  mkdir -p "$dir"
  cat >"$dir/kustomization.yaml" <<YAML
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - ../../config/default
images:
  - name: ensign
    newName: $name
    $reference
YAML
  printf '%s\n' "$dir"
}

# refuse_leftovers: once the manager or its definitions are gone, nobody removes
# the finalizers, and the deletion would wait for ever.
refuse_leftovers() {
  local kinds kind left=()
  kinds=$(kubectl kustomize config/crd | awk '/^kind: CustomResourceDefinition/ { crd = 1 } crd && /^  name: / { print $2; crd = 0 }')
  for kind in $kinds; do
    kubectl get crd "$kind" >/dev/null 2>&1 || continue
    [[ -z $(kubectl get "$kind" --all-namespaces --output name) ]] || left+=("$kind")
  done
  ((!${#left[@]})) || die "objects of these kinds exist: ${left[*]}. Delete them while the manager runs (kubectl delete KIND --all --all-namespaces), then try again"
}

choose_cluster
case ${1:-} in
install) kubectl apply -k config/crd ;;
uninstall)
  refuse_leftovers
  kubectl delete -k config/crd --ignore-not-found
  ;;
deploy) kubectl apply -k "$(overlay)" ;;
undeploy)
  refuse_leftovers
  kubectl delete -k config/default --ignore-not-found
  ;;
*) die "usage: hack/deploy.sh install|uninstall|deploy|undeploy" ;;
esac
