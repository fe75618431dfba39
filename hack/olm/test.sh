#!/usr/bin/env bash
# Installs the bundle by the Operator Lifecycle Manager on the real node (hack/node), and upgrades it: a catalog, a
# Subscription, InstallPlans that a person approves, an OperatorGroup of one namespace, of two and of all, and removal.
#
# The manager and opm are built from the Go module proxy, pinned byte for byte by this folder's go.sum. Their images,
# the bundles (by hack/release) and the catalog are pushed to a registry of this machine, which the node pulls from.
#
#   KEEP=1   leaves the node and the registry up, for a look; hack/node/node.sh down ends the node
#
# Exit code 77: this machine cannot run a node.
set -euo pipefail
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
source "$tests/../node/lib.sh"
source "$root/hack/image/builder.sh"

registry=$host_ip:5000
work=$NODE_WORK/olm
first=0.1.0 second=0.2.0
space=olm-tests other=olm-others operators=operator-lifecycle-manager

crane() { "$root/bin/tools/crane" "$@"; }

programs() {
  (cd "$tests" && GOFLAGS=-mod=readonly GOWORK=off CGO_ENABLED=0 "$root/hack/compile/compile.sh" olm -buildvcs=false \
    -tags 'json1 containers_image_openpgp' -ldflags '-s -w' -o "$bin/olm/" tool)
}

serve() {
  mkdir -p "$work/registry" "$NODE_WORK/registries/$registry"
  printf 'server = "http://%s"\n' "$registry" >"$NODE_WORK/registries/$registry/hosts.toml"
  "$root/bin/tools/crane" registry serve --address "$registry" --disk "$work/registry" >"$logs/registry.log" 2>&1 &
  server=$!
  until_true 20 crane catalog "$registry" || die "the registry does not answer, see $logs/registry.log"
}

# push NAME BASE DIR [COMMAND…] pushes an image of a directory above a base ("" for the Debian that hack/image builds
# on), and prints its digest.
push() {
  local name=$registry/$1 base=$2 dir=$3 layers=() entry
  shift 3
  tar -C "$dir" --owner=0 --group=0 -cf "$work/layer.tar" .
  [[ -n $base ]] || layers=(--new_layer "$IMAGE_WORK/debian-bookworm.tar")
  crane append ${base:+--base "$base"} "${layers[@]}" --new_layer "$work/layer.tar" --new_tag "$name" >"$logs/push.out" 2>&1 || die "push $name: $(tail -n 1 "$logs/push.out")"
  entry=$(IFS=, && echo "$*")
  crane mutate --set-platform "linux/$(go env GOHOSTARCH)" --user 1001 --entrypoint "$entry" --tag "$name" "$name" 2>>"$logs/push.out"
}

# tools makes the one image of all programs: that of the manager, of opm, and of the unpacking of bundles.
tools() {
  mkdir -p "$work/image"
  rm -rf "$work/image/usr"
  mkdir -p "$work/image/usr/bin" # Debian's /bin is a link to it.
  cp "$bin"/olm/* "$work/image/usr/bin/"
  mv "$work/image/usr/bin/grpc-health-probe" "$work/image/usr/bin/grpc_health_probe" # The name that pods of catalogs call.
  tools_image=$(push olm '' "$work/image" /bin/opm)
}

# lifecycle_manager installs its own chart, without the server of package lists and the catalog of operatorhub.io.
lifecycle_manager() {
  local chart=$work/chart source
  source=$(cd "$tests" && GOWORK=off GOFLAGS=-mod=readonly go list -m -f '{{.Dir}}' github.com/operator-framework/operator-lifecycle-manager)
  rm -rf "$chart"
  cp -R "$source/deploy/chart" "$chart"
  chmod -R u+w "$chart"
  rm "$chart"/templates/*packageserver* "$chart"/templates/*upstream-operators*
  kubectl apply --server-side -f "$chart/crds" >/dev/null
  kubectl wait '--for=jsonpath={.status.conditions[0].type}' --timeout=60s -f "$chart/crds" >/dev/null # Without any condition the next line would fail.
  kubectl wait --for=condition=Established --timeout=60s -f "$chart/crds" >/dev/null
  "$root/bin/tools/helm" template olm "$chart" --set "olm.image.ref=$tools_image,catalog.image.ref=$tools_image" \
    --set "catalog.opmImageArgs=--opmImage=$tools_image" | kubectl apply --server-side -f - >/dev/null
  kubectl -n "$operators" rollout status deployment --timeout=180s >/dev/null || die "the manager is not ready: kubectl -n $operators describe pods"
  say "the Operator Lifecycle Manager is ready"
}

# bundle VERSION makes and pushes the bundle as a release does, and notes its reference.
bundle() {
  mkdir -p "$work/$1"
  echo "ensign ensign:node" >"$work/$1/images.txt"
  REGISTRY=$registry OUT=$work/$1 "$root/hack/release/release.sh" "$1" bundle >"$logs/bundle-$1.log" 2>&1 || die "no bundle $1, see $logs/bundle-$1.log"
}

# catalog VERSION… makes the catalog of these versions, the oldest first, and gives it to the cluster. Each replaces the
# one before it, because a channel has one head, and by its range all that are older.
catalog() {
  local version reference before='' image
  rm -rf "$work/catalog"
  mkdir -p "$work/catalog/configs"
  {
    printf -- '---\nschema: olm.package\nname: ensign\ndefaultChannel: candidate\n---\nschema: olm.channel\npackage: ensign\nname: candidate\nentries:\n'
    for version in "$@"; do
      printf '  - {name: ensign.v%s, skipRange: "<%s"%s}\n' "$version" "$version" "${before:+, replaces: ensign.v$before}"
      before=$version
    done
    for version in "$@"; do
      reference=$(awk '$1 == "ensign-bundle" { print $2 }' "$work/$version/images.txt")
      "$bin/olm/opm" render --use-http --output yaml "$reference"
    done
  } >"$work/catalog/configs/catalog.yaml"
  "$bin/olm/opm" validate "$work/catalog/configs"
  image=$(push catalog "$tools_image" "$work/catalog" /bin/opm,serve,/configs)
  kubectl apply -f - >/dev/null <<YAML
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: ensign, namespace: $space}
spec: {sourceType: grpc, image: "$image", displayName: Ensign, grpcPodConfig: {securityContextConfig: restricted}}
YAML
}

# value KIND NAME PATH prints a field.
value() { kubectl -n "$space" get "$1" ${2:+"$2"} -o "jsonpath={$3}"; }

# becomes KIND NAME PATH WANT waits for a field.
becomes() {
  same() { [[ $(value "$1" "$2" "$3") == "$4" ]]; }
  until_true 300 same "$@" || die "$1 $2: $3 is \"$(value "$1" "$2" "$3")\", want \"$4\""
}

# approved VERSION approves the plan that installs it, and waits for its end.
approved() {
  local plan
  becomes subscription ensign .status.currentCSV "ensign.v$1"
  becomes subscription ensign .status.state UpgradePending
  plan=$(value subscription ensign .status.installPlanRef.name)
  [[ $(value installplan "$plan" .spec.approved) == false ]] || die "$plan needs no approval"
  kubectl -n "$space" patch installplan "$plan" --type=merge --patch '{"spec": {"approved": true}}' >/dev/null
  becomes installplan "$plan" .status.phase Complete
  becomes csv "ensign.v$1" .status.phase Succeeded
  becomes subscription ensign .status.installedCSV "ensign.v$1"
  say "ensign.v$1 is installed by $plan"
}

# watches WANT waits until the manager that runs was told these namespaces, and is ready.
watches() {
  becomes deployment ensign-manager '.spec.template.metadata.annotations.olm\.targetNamespaces' "$1"
  kubectl -n "$space" rollout status deployment ensign-manager --timeout=300s >/dev/null
}

# cr NAMESPACE creates a CR there.
cr() {
  kubectl -n "$1" apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Secret
metadata: {name: mysql-admin, labels: {myapp.myorg.tld/mysql-login: allowed}}
stringData: {username: root, password: "of-a-test"}
---
apiVersion: myapp.myorg.tld/v1
kind: MySQLCluster
metadata: {name: sample}
spec: {mysqlAdminSecret: mysql-admin, mysqlReadersSecret: mysql-admin, size: 1Gi}
YAML
}

# reconciled NAMESPACE waits for what the role makes of the CR.
reconciled() { until_true 300 kubectl -n "$1" get service sample-writer || die "the CR in $1 has no Service: kubectl -n $1 describe mysqlcluster sample"; }

# group NAMESPACE… makes the OperatorGroup choose these; none: all.
group() {
  local namespaces
  namespaces=$(printf ',"%s"' "$@")
  namespaces="{\"targetNamespaces\": [${namespaces#,}]}"
  (($#)) || namespaces='{}'
  kubectl apply -f - >/dev/null <<YAML
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: ensign, namespace: $space}
spec: $namespaces
YAML
}

installs() {
  kubectl create namespace "$space" >/dev/null
  kubectl create namespace "$other" >/dev/null
  catalog "$first"
  becomes catalogsource ensign .status.connectionState.lastObservedState READY
  say "the catalog answers"
  group "$space"
  kubectl apply -f - >/dev/null <<YAML
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: ensign, namespace: $space}
spec: {name: ensign, channel: candidate, source: ensign, sourceNamespace: $space, installPlanApproval: Manual}
YAML
  approved "$first"
}

# one_namespace shows that the manager reconciles in its own and not in another, whose CR is older.
one_namespace() {
  watches "$space"
  cr "$other"
  cr "$space"
  reconciled "$space"
  [[ -z $(kubectl -n "$other" get mysqlcluster sample -o 'jsonpath={.status}') ]] || die "the CR in $other has a status, and nobody watches it"
  say "OwnNamespace: the CR in $space is reconciled, that in $other is not"
}

upgrades() {
  catalog "$first" "$second"
  approved "$second"
  watches "$space"
  kubectl -n "$space" wait --for=delete "csv/ensign.v$first" --timeout=120s >/dev/null
}

more_namespaces() {
  group "$space" "$other"
  watches "$other,$space" # In the order of the alphabet.
  reconciled "$other"
  say "MultiNamespace: the CR in $other is reconciled"
}

all_namespaces() {
  group
  watches ''
  kubectl create namespace "$other-2" >/dev/null
  cr "$other-2"
  reconciled "$other-2"
  say "AllNamespaces: a CR in a namespace that came later is reconciled"
}

removes() {
  for each in "$space" "$other" "$other-2"; do kubectl -n "$each" delete mysqlcluster sample --wait=false >/dev/null; done
  for each in "$space" "$other" "$other-2"; do kubectl -n "$each" wait --for=delete mysqlcluster/sample --timeout=300s >/dev/null; done
  kubectl -n "$space" delete subscription ensign >/dev/null
  kubectl -n "$space" delete csv --all >/dev/null
  kubectl -n "$space" wait --for=delete deployment/ensign-manager --timeout=120s >/dev/null
  kubectl get crd mysqlclusters.myapp.myorg.tld >/dev/null || die "the CRD went with the operator"
  say "the operator is removed, its CRDs are there"
}

finish() {
  [[ -z ${KEEP:-} ]] || { say "the node is up: export KUBECONFIG=$KUBECONFIG" && return; }
  [[ -z ${server:-} ]] || kill "$server" 2>/dev/null || true
  "$root/hack/node/node.sh" down
  rm -rf "$work"
}

# In braces: bash reads on in a file while it runs it, and this one may change meanwhile.
{
  "$root/hack/node/check.sh"
  trap finish EXIT
  mkdir -p "$work" "$bin/olm" "$logs"
  for each in crane helm; do "$root/hack/tools/build.sh" "$each"; done
  programs
  say "programs are there"
  "$root/hack/node/node.sh" up
  "$root/hack/node/image.sh" product
  serve
  tools
  lifecycle_manager
  for each in "$first" "$second"; do bundle "$each"; done
  installs
  one_namespace
  upgrades
  more_namespaces
  all_namespaces
  removes
  say "the bundle works on the Operator Lifecycle Manager"
  exit
}
