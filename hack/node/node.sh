#!/usr/bin/env bash
# A real Kubernetes node on this machine: kubelet, containerd, runc, a CNI bridge,
# kube-proxy, CoreDNS and dynamic volumes, beside the control plane of bin/controlplane.
#
#   node.sh up                brings the node up, building what is missing; idempotent
#   node.sh down              ends it, and takes away all of its state
#   node.sh kubeconfig        prints the path of its kubeconfig
#   node.sh restart PROGRAM   kills a server; it starts again (kubelet, containerd, …)
#
# On the machine remain a link to the node, /run/netns/NAME and the cgroups of its name
# while it is up. Sysctls and packet filters of the machine are not touched.
# Parameters: lib.sh. Logs: $NODE_WORK/log.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# network makes the node's network namespace: one link to the machine, no route beyond.
network() {
  ip netns add "$NODE_NAME"
  ip link add "$link" type veth peer name eth0 netns "$NODE_NAME"
  ip addr add "$host_ip/30" dev "$link"
  ip link set "$link" up
  ip -n "$NODE_NAME" addr add "$node_ip/30" dev eth0
  ip -n "$NODE_NAME" link set lo up
  ip -n "$NODE_NAME" link set eth0 up
  # So that the node itself reaches Services; kube-proxy turns the packets round.
  ip -n "$NODE_NAME" route add "$service_cidr" dev eth0 src "$node_ip"
}

cgroups() {
  local hierarchy file
  for hierarchy in $(hierarchies); do
    mkdir -p "$hierarchy/$NODE_NAME"
    for file in cpuset.cpus cpuset.mems; do
      [[ ! -f $hierarchy/$file ]] || cat "$hierarchy/$file" >"$hierarchy/$NODE_NAME/$file"
    done
    # A cgroup competes as one with each single process of the root. With the default,
    # 1024, all pods together would get the share of one busy process.
    [[ ! -f $hierarchy/cpu.shares ]] || echo 20480 >"$hierarchy/$NODE_NAME/cpu.shares"
  done
}

# init starts the node's first process. Not `ip netns exec`: it would mount /sys anew,
# without the cgroups.
init() {
  setsid unshare --mount --propagation private --pid --fork --mount-proc --kill-child=KILL \
    nsenter --net="/run/netns/$NODE_NAME" -- env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    NODE_NAME="$NODE_NAME" NODE_WORK="$NODE_WORK" NODE_NET="$NODE_NET" \
    bash "$here/init.sh" >"$logs/node.log" 2>&1 </dev/null &
  echo $! >"$state/unshare.pid"
}

up() {
  if alive; then
    say "the node is up already: export KUBECONFIG=$KUBECONFIG"
    return
  fi
  "$here/check.sh"
  clear_away # What an end without "down" left.
  "$here/build.sh"
  say "programs are there"
  mkdir -p "$logs" "$state"
  rm -f "$logs"/*.log
  "$here/config.sh"
  network
  cgroups
  init
  until_true 120 kubectl get --raw /readyz || die "the API server is not ready, see $logs/kube-apiserver.log"
  say "the API server is ready: https://$node_ip:$api_port"
  until_true 60 ctr version || die "containerd does not answer, see $logs/containerd.log"
  "$here/image.sh" program "$bin/pause" "$pause_image"
  "$here/image.sh" program "$bin/coredns" ensign.local/coredns:1
  kubectl apply -f "$here/cluster.yaml" >/dev/null
  until_true 120 kubectl wait --for=condition=Ready "node/$NODE_NAME" --timeout=2s || die "the node is not Ready, see $logs/kubelet.log"
  say "the node is Ready: $(kubectl get node "$NODE_NAME" --no-headers | tr -s ' ')"
  kubectl -n kube-system rollout status deployment/coredns --timeout=120s >/dev/null || die "CoreDNS is not ready: kubectl -n kube-system describe pods"
  say "CoreDNS answers; export KUBECONFIG=$KUBECONFIG"
}

clear_away() {
  local pid hierarchy
  if alive; then
    pid=$(node_pid)
    kill -KILL "$pid" # The PID namespace's first process: every other one ends with it.
    until_true 30 test ! -d "/proc/$pid" || die "process $pid does not end"
  fi
  ip link del "$link" 2>/dev/null || true
  ip netns del "$NODE_NAME" 2>/dev/null || true
  # runc makes some in the hybrid hierarchy too, which hierarchies leaves out.
  for hierarchy in /sys/fs/cgroup/*/; do
    [[ ! -d $hierarchy$NODE_NAME ]] || until_true 10 no_groups "$hierarchy$NODE_NAME" || say "left: $hierarchy$NODE_NAME"
  done
  rm -rf "$state"
}

down() {
  clear_away
  say "the node is down"
}

# no_groups removes a tree of cgroups, the innermost first; it fails while one is in use.
no_groups() {
  find "$1" -depth -type d -exec rmdir {} + 2>/dev/null || true
  [[ ! -d $1 ]]
}

restart() {
  local file=$state/$1.pid pid
  [[ -s $file ]] || die "there is no server \"$1\"; those of $state/*.pid are"
  pid=$(<"$file")
  in_node /bin/kill -KILL "$pid"
  another() { [[ $(<"$file") != "$pid" ]]; }
  until_true 30 another || die "$1 does not start again, see $logs/$1.log"
}

case ${1:-} in
up | down) "$1" ;;
restart) restart "${2:?the name of a server}" ;;
kubeconfig) printf '%s\n' "$KUBECONFIG" ;;
*) die "usage: hack/node/node.sh up|down|kubeconfig|restart PROGRAM" ;;
esac
