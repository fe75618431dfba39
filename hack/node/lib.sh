# Sourced by the scripts of this folder: parameters of the node, and what all use.
# shellcheck shell=bash
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
root=$(cd "$here/../.." && pwd -P)

# Go keeps its caches there. If it is not set, a shell knows it from the account.
export HOME=${HOME:-$(echo ~)}

# Parameters; each can be set in the environment.
: "${NODE_NAME:=ensign-node}"      # of the node, its network namespace and its cgroup
: "${NODE_WORK:=$root/.dev/node}"  # all that is made: programs, images, state, logs
: "${NODE_NET:=10.250.0}"          # three numbers: with .1 behind them it is the machine, with .2 the node

pod_cidr=10.244.0.0/24 service_cidr=10.96.0.0/16 # DNS is 10.96.0.10, see cluster.yaml
host_ip=$NODE_NET.1 node_ip=$NODE_NET.2 api_port=6443
link=veth-${NODE_NAME:0:9} # Linux takes 15 letters.
state=$NODE_WORK/state logs=$NODE_WORK/log bin=$NODE_WORK/bin images=$NODE_WORK/images
controlplane=$root/bin/controlplane
socket=$state/containerd.sock
pause_image=ensign.local/pause:1
export KUBECONFIG=$state/admin.kubeconfig

# What Debian has to give: the programs of the node, those that build images, and a browser.
packages=(runc containernetworking-plugins iptables nftables conntrack iproute2 util-linux openssl buildah mmdebstrap ca-certificates chromium)

say() { printf 'node: %4d s  %s\n' "$SECONDS" "$*" >&2; }

die() {
  printf 'node: %s\n' "$*" >&2
  exit 1
}

# cannot ends with 77: the machine is not made for this, nothing is wrong with the tree.
cannot() {
  printf 'node: this machine cannot run a node: %s\n' "$*" >&2
  exit 77
}

[[ $NODE_NET =~ ^[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}$ ]] || die "NODE_NET is $NODE_NET; it takes the first three numbers of a network, such as 10.250.0"

kubectl() { "$controlplane/kubectl" "$@"; }
ctr() { in_node "$bin/ctr" --address "$socket" --namespace k8s.io "$@"; }
in_node() { nsenter --target "$(node_pid)" --mount --net --pid -- "$@"; }

# node_pid prints the machine's number of the node's first process, the child of unshare.
node_pid() {
  local outer
  outer=$(<"$state/unshare.pid")
  tr -d ' ' <"/proc/$outer/task/$outer/children"
}

# alive reports whether the process that up noted is still this node's.
alive() {
  local outer
  [[ -s $state/unshare.pid ]] && outer=$(<"$state/unshare.pid") || return 1
  [[ -r /proc/$outer/cmdline && $(tr '\0' ' ' <"/proc/$outer/cmdline") == *"$here/init.sh"* && -n $(node_pid) ]]
}

# until_true LIMIT COMMAND… repeats the command until it succeeds, at most LIMIT seconds.
until_true() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || return 1
    sleep 0.2
  done
}

# hierarchies prints the directories of the machine's cgroup v1 controllers.
hierarchies() {
  local dir
  for dir in /sys/fs/cgroup/*/; do
    [[ ! -f ${dir}cgroup.procs || -f ${dir}cgroup.controllers ]] || printf '%s\n' "${dir%/}"
  done
}
