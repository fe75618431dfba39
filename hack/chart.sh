#!/usr/bin/env bash
# Derives from config/ what the chart only repeats: definitions, roles and alerts.
#
#   hack/chart.sh          writes charts/ensign/files
#   hack/chart.sh check    fails when they differ from what it would write
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$root"
files=charts/ensign/files

die() {
  printf 'chart: %s\n' "$*" >&2
  exit 1
}

kubectl=bin/controlplane/kubectl
[[ -x $kubectl ]] || kubectl=$(command -v kubectl) || die 'there is no kubectl: run "make controlplane", or put yours into PATH'

# roles writes each role of config/rbac to a file of its name in a directory.
roles() {
  "$kubectl" kustomize config/rbac | awk -v dir="$1" '
    function flush() { if (text ~ /\nkind: (Cluster)?Role\n/) printf "%s", text > (dir "/" name ".yaml"); text = "" }
    /^---/ { flush(); next }
    /^  name: / { name = $2 }
    { text = text $0 "\n" }
    END { flush() }'
}

# alerts prints the PrometheusRule's spec, which kustomize writes last.
alerts() { "$kubectl" kustomize config/prometheus | awk '/^---/ { spec = 0 } /^kind: / { rule = $2 == "PrometheusRule" } rule && /^spec:/ { spec = 1 } spec'; }

# definitions prints the CRDs with the labels of config/default, and the annotation that
# keeps them when a release is uninstalled. A kustomization reads no files above its own
# directory, but it may name a directory there.
definitions() {
  local dir=.dev/chart
  mkdir -p "$dir"
  cat >"$dir/kustomization.yaml" <<YAML
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [$(realpath --relative-to="$dir" config/crd)]
labels:
  - pairs: {app.kubernetes.io/part-of: ensign}
commonAnnotations: {helm.sh/resource-policy: keep}
YAML
  "$kubectl" kustomize "$dir"
}

# listing prints a role that may list the kinds that the definitions on standard input define.
listing() {
  printf 'rules:\n'
  awk '
    function flush() { if (plural) printf "- apiGroups:\n  - %s\n  resources:\n  - %s\n  verbs:\n  - list\n", group, plural; plural = "" }
    /^---/ { flush() }
    /^  group: / { group = $2 }
    /^    plural: / { plural = $2 }
    END { flush() }'
}

# write derives the files into a directory.
write() {
  mkdir -p "$1/roles"
  definitions >"$1/crds.yaml"
  listing <"$1/crds.yaml" >"$1/uninstall-check.yaml"
  roles "$1/roles"
  alerts >"$1/alerts.yaml"
}

case ${1:-write} in
write)
  rm -rf "$files"
  write "$files"
  ;;
check)
  fresh=$(mktemp -d)
  trap 'rm -rf "$fresh"' EXIT
  write "$fresh"
  diff -r "$files" "$fresh" || die "$files is not what config/ says: run \"make chart\" and commit it"
  ;;
*) die "usage: hack/chart.sh [write|check]" ;;
esac
