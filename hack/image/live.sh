#!/usr/bin/env bash
# Runs the managers of two images on an embedded control plane: with a read-only root, as users
# that a cluster would choose, and with what the images' configuration says. A real node is
# test/node's business.
#
#   hack/image/live.sh ROOT_OF_ENSIGN ROOT_OF_OPERATOR
#
# bin/controlplane (make controlplane) has the servers. Everything that it starts has ended when it returns.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
cd "$here/../.."
ensign=$1 operator=$2
work=$(mktemp -d)
kubeconfig=$work/kubeconfig
pids=()

# finish ends what was started, the last one first.
finish() {
  local status=$? i
  for ((i = ${#pids[@]} - 1; i >= 0; i--)); do end "${pids[i]}" || true; done
  ((!status)) || tail -n 40 "$work"/*.log >&2
  rm -rf "$work"
}
trap finish EXIT

# end stops a process in an orderly way, and returns its exit code. unshare passes no signals
# on, so those of a manager go to its child, which is the first process of its namespace.
end() {
  local first
  first=$(pgrep --parent "$1" || true)
  if [[ $(ps -o comm= -p "$1") != unshare ]]; then first=$1; fi
  [[ -z $first ]] || kill -TERM "$first" 2>/dev/null || true
  wait "$1"
}

kube() { KUBECONFIG=$kubeconfig bin/controlplane/kubectl "$@"; }

# until_true SECONDS TEXT COMMAND… waits until the command succeeds.
until_true() {
  local end=$((SECONDS + $1)) text=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || { printf 'waited in vain: %s\n' "$text" >&2 && return 1; }
    sleep 0.2
  done
}

# manager NAME ROOT METRICS_PORT [OPTION…] -- COMMAND… starts a manager in an image.
manager() {
  local name=$1 root=$2 port=$3
  shift 3
  "$here/inside.sh" "$root" --dir /opt/ansible --bind "$kubeconfig=kubeconfig" --env KUBECONFIG=/tmp/kubeconfig \
    --env HOME=/opt/ansible --env LANG=C.UTF-8 --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    --env ANSIBLE_LOCAL_TEMP=/tmp --env ANSIBLE_REMOTE_TEMP=/tmp --env ANSIBLE_GATHERING=explicit "$@" \
    --metrics-bind-address="127.0.0.1:$port" --health-probe-bind-address=0 >"$work/$name.log" 2>&1 &
  pids+=($!)
  until_true 60 "the manager of $name" curl -fsS "http://127.0.0.1:$port/metrics"
}

successful() { kube wait --for=condition=Successful --timeout=180s "$@"; }

# has NAME KEY VALUE is true when the ConfigMap says so.
has() { [[ $(kube get configmap "$1" -o "jsonpath={.data.$2}") == "$3" ]]; }

# again RESOURCE… has the content run once more.
again() { kube annotate --overwrite "$@" "ansible.sdk.operatorframework.io/reconcile-requested-at=$RANDOM$RANDOM" >/dev/null; }

measured() { curl -fsS "http://127.0.0.1:$1/metrics" | grep -E '^(ansible_operator_runs_total|ensign_operator_module_runs_total|ensign_operator_warm_mechanism_off)'; }

# warm PORT is true when the metrics know a warm run and a warm module.
warm() {
  local metrics
  metrics=$(measured "$1")
  grep -qE '^ansible_operator_runs_total\{.*mode="warm".*\} [1-9]' <<<"$metrics" &&
    grep -qE '^ensign_operator_module_runs_total\{mode="warm".*\} [1-9]' <<<"$metrics"
}

# all_warm PORT prints the metrics, and fails when a mechanism is off or a module had an interpreter of its own.
all_warm() {
  measured "$1"
  if measured "$1" | grep -E '^(ensign_operator_warm_mechanism_off|ensign_operator_module_runs_total\{mode="cold").* [1-9]'; then return 1; fi
}

go build -o bin/devcluster ./hack/devcluster
bin/devcluster --kubeconfig "$kubeconfig" >"$work/devcluster.log" 2>&1 &
pids+=($!)
until_true 60 'the control plane' grep -q '^ready' "$work/devcluster.log"
# The users in the images are others; the cluster is this script's and ends with it.
chmod 755 "$work" && chmod 644 "$kubeconfig"
kube apply -k config/crd >/dev/null
kube apply -k test/node/testdata/operator/config/crd >/dev/null
kube wait '--for=jsonpath={.status.conditions[0].type}' --timeout=30s crd --all >/dev/null # Without any condition the next line would fail.
kube wait --for=condition=Established --timeout=30s crd --all >/dev/null

printf -- '--- the operator of four kinds, as user 1000650000\n'
manager operator "$operator" 18081 --user 1000650000:0 -- \
  /tini -- /usr/local/bin/ansible-operator run --watches-file=./watches.yaml
kube apply -k test/node/testdata/operator/config/samples >/dev/null
successful site/cafe menu/lunch booking/smith kiosk/corner
has cafe-site slug coffee-bar
has lunch-menu dishes 'Pizzas, Sandwiches'
has bookings smith 4
has corner-sign sign 'Ice cream'
[[ $(kube get menu/lunch -o 'jsonpath={.status.dishes}') == 2 ]]
again site/cafe menu/lunch
until_true 60 'a warm run and a warm module' warm 18081
kube delete booking/smith kiosk/corner --timeout=60s
has bookings smith ''
all_warm 18081
end "${pids[-1]}"

printf -- '--- ensign, with a read-only root\n'
manager ensign "$ensign" 18082 --read-only --user 1001:0 -- /usr/bin/tini -- /usr/local/bin/manager
kube apply -k config/samples >/dev/null
successful --all mysqlclusters,mysqlendpoints
again --all mysqlclusters
until_true 60 'a warm run and a warm module' warm 18082
all_warm 18082
kube delete -k config/samples --timeout=120s >/dev/null
end "${pids[-1]}"
