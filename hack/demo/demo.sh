#!/usr/bin/env bash
# The guided tour of `make demo`: boots a cluster, runs the manager, and leads one
# MySQLCluster through its life. Each step says what is done and why, shows the
# kubectl command, and checks what it led to: the first thing that does not hold ends
# the tour with exit code 1. Whatever it started or created is taken down at the end,
# also after Ctrl-C.
#
#   KEEP=1                 leaves everything up until Ctrl-C
#   DEMO_CLUSTER=current   uses the cluster of KUBECONFIG instead of its own, with the
#                          kubectl of PATH
#
# It needs bin/manager, bin/devcluster, bin/controlplane and .venv: `make demo` makes them, and
# bin/ensign for KEEP=1. For DEMO_CLUSTER=current bin/manager and .venv do.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

definitions=(config/crd/bases/*.yaml)
sample=mysqlcluster-sample
log=.dev/manager.log
manager='' cluster='' follower='' command='' dir='' namespace='' kept='' interrupted='' defined=()
number=0 title='the settings'

say() { printf '%s\n' "$*"; }
indented() { sed 's/^/      /'; }
holds() { say "  ✓ $*"; }
die() {
  say "demo: $*" >&2
  exit 1
}

# step opens a step of the tour; the text after its title says why.
step() {
  number=$((number + 1)) title=$1
  printf '\n━━━ %d/%d  %s  ━━━  (%d s since the start)\n' "$number" "$steps" "$title" "$SECONDS"
  fmt -w 92 <<<"$2" | sed 's/^/  /'
}

# kubectl shows a command so that it can be typed again, runs it and shows its output,
# which stays in $dir/said. A signal interrupts it.
kubectl() {
  local word shown='  $ kubectl' status=0
  for word in "$@"; do
    [[ $word =~ ^[A-Za-z0-9_./:=,@-]+$ ]] || word="'${word//\'/\'\\\'\'}'"
    shown+=" $word"
  done
  say "$shown"
  command kubectl "$@" >"$dir/said" 2>&1 &
  command=$!
  wait "$command" || status=$?
  command=
  indented <"$dir/said"
  return "$status"
}

# said reports whether the last command's output has the text.
said() { grep -qF -e "$1" "$dir/said"; }

# reported waits until a run for the present generation has ended so. The condition
# carries the generation that it is about, and kubectl compares it.
reported() {
  kubectl -n "$namespace" wait "mysqlcluster/$sample" "--for=condition=$1" --timeout=3m
  holds "the status says $1, for this generation"
}

show_status() {
  kubectl -n "$namespace" get mysqlcluster "$sample"
  kubectl -n "$namespace" get mysqlcluster "$sample" \
    -o 'jsonpath={range .status.conditions[*]}{.type}={.status}  {.reason}  {.message}{"\n"}{end}'
}

set_version() {
  kubectl -n "$namespace" patch mysqlcluster "$sample" --type=merge -p "{\"spec\":{\"mysqlVersion\":\"$1\"}}"
}

# serves checks that the server is ready, in the version and on a volume.
serves() {
  kubectl -n "$namespace" rollout status "statefulset/$sample" --timeout=3m
  kubectl -n "$namespace" wait pvc -l "mysql-cluster=$sample" '--for=jsonpath={.status.phase}=Bound' --timeout=1m
  kubectl -n "$namespace" get pods -l "mysql-cluster=$sample" -o 'jsonpath={range .items[*]}{.spec.containers[0].image}{"\n"}{end}'
  grep -qE ":${1//./\\.}$" "$dir/said" || die "the server does not run version $1"
  holds "the server is ready and runs version $1"
}

# logged checks the manager's log.
logged() {
  grep -qE -e "$1" "$log" || die "$log has no line like $1"
  holds "$2"
}

# end sends TERM to a process, waits for its end and returns its exit code.
end() {
  kill -TERM "$1" 2>"$dir/said" || true
  timeout 30 tail --pid="$1" -f /dev/null || kill -KILL "$1"
  wait "$1"
}

boot_cluster() {
  local line ready=
  PATH=$PWD/bin/controlplane:$PATH
  export KUBECONFIG=$dir/kubeconfig
  # In sessions of their own, cluster and manager get no Ctrl-C: they are ended in order.
  exec 3< <(exec setsid bin/devcluster --bin bin/controlplane --kubeconfig "$KUBECONFIG" 2>&1)
  cluster=$!
  while [[ -z $ready ]] && read -r line <&3; do
    indented <<<"$line"
    [[ $line != 'ready after'* ]] || ready=1
  done
  [[ -n $ready ]] || die "the cluster did not start"
  look_on="export KUBECONFIG=$KUBECONFIG PATH=$PWD/bin/controlplane:\$PATH"
  kubectl get nodes
}

define() {
  local file name
  for file in "${definitions[@]}"; do
    name=$(command kubectl get -f "$file" --ignore-not-found -o name)
    if [[ -n $name ]]; then
      say "  $name is defined already and is used as it is."
    else
      defined+=("$file")
      kubectl apply -f "$file"
    fi
    kubectl wait -f "$file" '--for=jsonpath={.status.conditions[0].type}' --timeout=60s # Without any condition the next line would fail.
    kubectl wait -f "$file" --for=condition=Established --timeout=60s
  done
  holds "the API server serves the new kinds"
}

start_manager() {
  say "  \$ WATCH_NAMESPACE=$namespace bin/manager --kubeconfig $KUBECONFIG --max-backoff 10s"
  : >"$log"
  WATCH_NAMESPACE=$namespace setsid bin/manager --kubeconfig "$KUBECONFIG" --metrics-bind-address 0 \
    --health-probe-bind-address 0 --user-metrics-bind-address 0 --max-backoff 10s --run-dir "$dir/runs" >>"$log" 2>&1 &
  manager=$!
  say "  Its log is $log; the lines about our object are shown below, shortened."
  tail --pid=$$ -n +1 -f "$log" > >(sed -nuE \
    -e "s#^($namespace/$sample \| )#      \1#p" \
    -e "\#\"cr\": \"$namespace/$sample\"#{
      s/\"(cr|watch|host|run)\": \"[^\"]*\",? ?//g
      s/^[^T]*T([0-9:]{8})[^\t]*\t[A-Z]+\t[^\t]*\t([^\t]*)\t\{(.*[^ ,])[ ,]*\}/      \1  \2  \3/p
    }") 2>/dev/null &
  follower=$!
  local watching
  watching=$(timeout 60 grep -cm "${#definitions[@]}" $'\twatching\t' < <(exec tail --pid="$manager" -n +1 -f "$log")) || true
  ((watching == ${#definitions[@]})) || die "the manager watches ${watching:-none} of its ${#definitions[@]} kinds"
  holds "the manager watches its kinds"
}

create() {
  kubectl -n "$namespace" apply -f config/samples/secrets.yaml -f config/samples/myapp_v1_mysqlcluster.yaml
  reported Successful
  show_status
  kubectl -n "$namespace" get statefulset,service,configmap,poddisruptionbudget -l "mysql-cluster=$sample" \
    -o 'custom-columns=KIND:.kind,NAME:.metadata.name,OWNER:.metadata.ownerReferences[*].name'
  local kind
  for kind in StatefulSet Service ConfigMap PodDisruptionBudget; do
    grep -qE "^$kind +[^ ]+ +$sample$" "$dir/said" || die "no $kind belongs to the MySQLCluster"
  done
  ! grep -qE '<none>$' "$dir/said" || die "something does not belong to the MySQLCluster"
  holds "each of them belongs to the MySQLCluster"
  serves 8.4
}

break_it() {
  kubectl -n "$namespace" delete secret mysql-admin
  set_version 9.1
  reported Failure
  show_status
  grep -qE '^Failure=True .*mysql-admin' "$dir/said" || die "the condition's message does not name the Secret"
  holds "its message names the Secret"
  logged "^$namespace/$sample \| .*mysql-admin" "the log has the failed task's output"
  serves 9.0
}

fix_it() {
  kubectl -n "$namespace" apply -f config/samples/secrets.yaml
  reported Successful
  serves 9.1
  show_status
}

delete_it() {
  kubectl -n "$namespace" get mysqlcluster "$sample" -o 'jsonpath={.metadata.finalizers}{"\n"}'
  said myapp.myorg.tld/cluster-finalizer || die "it has no finalizer of ours"
  kubectl -n "$namespace" delete mysqlcluster "$sample" --timeout=3m
  holds "the MySQLCluster is gone"
  logged '"task": "mysqlcluster_finalizer : ' "its finalizer's role ran first"
  local all=statefulset,service,configmap,poddisruptionbudget,persistentvolumeclaim,pod
  kubectl -n "$namespace" wait --for=delete "$all" -l "mysql-cluster=$sample" --timeout=2m
  kubectl -n "$namespace" get "$all" -l "mysql-cluster=$sample"
  said 'No resources found' || die "something of it is left"
  holds "nothing that belonged to it is left"
  kubectl -n "$namespace" get secret mysql-admin mysql-readers
  holds "what was not its own is untouched: the Secrets"
}

stop_manager() {
  say "  \$ kill -TERM $manager"
  local status=0 pid=$manager
  manager=
  end "$pid" || status=$?
  ((status == 0)) || die "the manager exited with $status"
  holds "it exited with 0"
}

keep() {
  kept=1
  cat <<EOF

KEEP=1: cluster and manager stay up. In another terminal, in $PWD:
  $look_on
  kubectl -n $namespace apply -k config/samples
  bin/ensign status -n $namespace --watch
  kubectl -n $namespace describe mysqlcluster $sample
  kubectl -n $namespace delete mysqlcluster $sample
  tail -f $log
Ctrl-C here ends it all.
EOF
  tail --pid="$manager" -f /dev/null &
  command=$!
  wait "$command" || true
  die "the manager has ended"
}

# remove takes out of a cluster that is not the tour's what the tour created, while the
# manager still runs. Objects that are not finalized within a minute lose their finalizers.
remove() {
  local file kind name failed=0
  # The clusters last: the finalizers of what is on them need them.
  for kind in $(printf '%s\n' "${definitions[@]}" | sed -E 's/.*_(.*)\.yaml/\1/' | grep -vx mysqlclusters) mysqlclusters; do
    command kubectl -n "$namespace" delete "$kind.myapp.myorg.tld" --all --timeout=1m >"$dir/said" 2>&1 ||
      for name in $(command kubectl -n "$namespace" get "$kind.myapp.myorg.tld" -o name 2>"$dir/said"); do
        command kubectl -n "$namespace" patch "$name" --type=merge -p '{"metadata":{"finalizers":null}}' || failed=1
      done
  done
  command kubectl delete namespace "$namespace" --timeout=2m || failed=1
  for file in "${defined[@]}"; do
    kind=$(command kubectl get -f "$file" --ignore-not-found -o 'jsonpath={.spec.names.plural}.{.spec.group}') || failed=1
    [[ -n $kind ]] || continue
    if [[ -n $(command kubectl get "$kind" --all-namespaces -o name) ]]; then
      say "  $kind stays: there are objects of others"
    else
      command kubectl delete -f "$file" --timeout=1m || failed=1
    fi
  done
  return "$failed"
}

# strike is the only exit: it says what failed and takes everything down.
strike() {
  local status=$? ended=
  trap - INT TERM HUP EXIT
  set +e
  [[ -z $command ]] || kill "$command" 2>/dev/null
  if [[ -n $interrupted ]]; then
    say "Interrupted; taking everything down."
    [[ -z $kept ]] || status=0 # Ctrl-C is how a kept tour ends.
  fi
  if ((status != 0)); then
    say "demo: FAILED in step $number, $title (exit code $status)" >&2
    if [[ -n $manager ]] && ! kill -0 "$manager" 2>/dev/null; then
      say "demo: the manager has ended; the end of its log:" >&2
      tail -n 20 "$log" >&2
    elif [[ -n $cluster ]] && ! kill -0 "$cluster" 2>/dev/null; then
      say "demo: the cluster has ended:" >&2
      cat <&3 >&2
    fi
    status=1
  fi
  if [[ -z $cluster && -n $namespace ]]; then
    remove || ended="what the tour created in the cluster was not removed"
  fi
  if [[ -n $manager ]]; then
    end "$manager" || ended="the manager did not end well"
  fi
  [[ -z $follower ]] || kill "$follower" 2>/dev/null
  if [[ -n $cluster ]]; then
    end "$cluster" || ended="the cluster did not end well"
  fi
  [[ -z $dir ]] || rm -rf "$dir" || ended="$dir is left"
  if [[ -n $ended ]]; then
    say "demo: $ended" >&2
    exit 1
  fi
  ((status != 0)) || say "Everything is down again."
  exit "$status"
}

case ${KEEP:-0} in
0 | 1) ;;
*) die "KEEP is \"$KEEP\"; 1 keeps everything up, 0 or nothing does not" ;;
esac
case ${DEMO_CLUSTER:-} in
'') ;;
current) [[ -n ${KUBECONFIG:-} ]] || die "DEMO_CLUSTER=current needs KUBECONFIG, the path of the cluster's kubeconfig" ;;
*) die "DEMO_CLUSTER is \"$DEMO_CLUSTER\"; \"current\" uses KUBECONFIG's cluster, nothing boots one" ;;
esac
steps=$((${KEEP:-0} ? 8 : 9))
look_on="export KUBECONFIG=${KUBECONFIG:-}"

trap strike EXIT
trap 'interrupted=1; exit 1' INT TERM HUP
mkdir -p .dev
dir=$(mktemp -d "$PWD/.dev/demo-XXXXXX")
say "Ensign: a guided tour of one operator, about 2 minutes. Every ✓ is checked, not only printed."

if [[ -n ${DEMO_CLUSTER:-} ]]; then
  step "Join your cluster" "KUBECONFIG's cluster is used. The tour works in a namespace of its own, and removes at the end what it has created."
  new=ensign-demo-$$-$(date +%s)
else
  step "Boot a cluster" "etcd, the API server, its controllers and the scheduler are the real ones; the node is a fake: Pods become Ready on it, but nothing runs in them."
  boot_cluster
  new=demo
fi
kubectl create namespace "$new"
namespace=$new
say "  To look on from another terminal:"
say "      $look_on"

step "Teach it new kinds" "A CustomResourceDefinition gives the API server a kind, with its schema: what a user may write is checked before Ansible sees it."
define

step "Start the manager" "One process watches the kinds of watches.yaml and runs Ansible for each object. It talks to the cluster from outside here; in production it is a Deployment."
start_manager

step "Ask for a MySQL server" "Two Secrets and a MySQLCluster. The manager hands its spec to the role mysqlcluster, logs each task as it happens, and writes what came out into the status."
create

step "Ask for another version" "A change of the spec is a new generation, and leads to a new run of the same role. Ansible changes only what differs."
set_version 9.0
reported Successful
serves 9.0

step "Break it" "A Secret that the spec names is deleted, and the version changed once more. The role notices and says so: in the log with the task's whole output, and in the status. The server itself is left alone."
break_it

step "Fix it" "The Secret comes back. Nothing else has to be done: a failed run is repeated, after a pause that grows with each failure."
fix_it

step "Delete it" "The object has a finalizer: the role mysqlcluster_finalizer runs first, stops the server and deletes its volume. Then the object goes, and the garbage collector takes what belonged to it."
delete_it

if [[ ${KEEP:-0} == 1 ]]; then
  say "The tour is over after $SECONDS s; all of it held."
  keep
fi
step "Stop the manager" "It gets TERM, as from Kubernetes: no run starts any more, live ones are ended, and it exits in order."
stop_manager
say "
The tour is over after $SECONDS s; all of it held."
