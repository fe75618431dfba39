#!/usr/bin/env bash
# PID 1 of the node. It runs in mount, PID and network namespaces of its own, so that
# killing it ends every process, mount and packet filter of the node.
set -uo pipefail # No -e: a server that fails must not take the others with it.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
trap 'exit 0' TERM
mount --make-rshared /

# The servers come before the pods: busy pods must not cost anyone a lease.
cgroup=/sys/fs/cgroup/cpu/$NODE_NAME/system
mkdir -p "$cgroup" && echo 8192 >"$cgroup/cpu.shares" && echo 0 >"$cgroup/cgroup.procs"

# What would be written to the machine goes to the state directory instead.
mkdir -p "$state"/{var-log/pods,var-log/containers,kubelet,containerd/root,etcd,volumes,sysctl}
for dir in /run/containerd /run/netns /run/runc; do
  mkdir -p "$dir" && mount -t tmpfs tmpfs "$dir"
done
mount --bind "$state/var-log" /var/log
# The kubelet sets these; they belong to the whole machine.
for sysctl in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
  [[ -e /proc/sys/$sysctl ]] || continue
  file=$state/sysctl/${sysctl//\//.}
  cat "/proc/sys/$sysctl" >"$file" && mount --bind "$file" "/proc/sys/$sysctl"
done
echo 1 >/proc/sys/net/ipv4/ip_forward # Of this network namespace.

# start NAME COMMAND… runs a server and starts it again when it ends, as systemd would.
# $state/NAME.pid is its process, in this PID namespace.
start() {
  local name=$1
  shift
  while :; do
    "$@" >>"$logs/$name.log" 2>&1 &
    echo $! >"$state/$name.pid"
    wait $!
    echo "$name ended: $?"
    sleep 0.5
  done &
}

pki=$state/pki
start etcd "$controlplane/etcd" --name=e --data-dir="$state/etcd/data" --listen-client-urls=unix://"$state/etcd/c.sock" \
  --advertise-client-urls=http://localhost:2379 --listen-peer-urls=unix://"$state/etcd/p.sock" \
  --initial-advertise-peer-urls=http://localhost:2380 --initial-cluster=e=http://localhost:2380 --unsafe-no-fsync=true --log-level=warn
start kube-apiserver "$controlplane/kube-apiserver" --etcd-servers=unix://"$state/etcd/c.sock" \
  --bind-address=0.0.0.0 --advertise-address="$node_ip" --secure-port="$api_port" --endpoint-reconciler-type=lease \
  --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" --client-ca-file="$pki/ca.crt" \
  --kubelet-client-certificate="$pki/kubelet-client.crt" --kubelet-client-key="$pki/kubelet-client.key" \
  --kubelet-preferred-address-types=InternalIP --authorization-mode=Node,RBAC \
  --enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement --allow-privileged=true \
  --service-cluster-ip-range="$service_cidr" --service-account-issuer=https://kubernetes.default.svc.cluster.local \
  --service-account-key-file="$pki/sa.key" --service-account-signing-key-file="$pki/sa.key"
start kube-controller-manager "$controlplane/kube-controller-manager" --kubeconfig="$state/controller-manager.kubeconfig" --leader-elect=false \
  --secure-port=0 --service-account-private-key-file="$pki/sa.key" --root-ca-file="$pki/ca.crt" --use-service-account-credentials=true
start kube-scheduler "$controlplane/kube-scheduler" --kubeconfig="$state/scheduler.kubeconfig" --leader-elect=false --secure-port=0
export PATH=$bin:$PATH # containerd looks for its shim there.
start containerd "$bin/containerd" --config "$state/containerd.toml"
start kube-proxy "$bin/kube-proxy" --config "$state/proxy.yaml"
start provisioner "$bin/provisioner" --kubeconfig "$state/provisioner.kubeconfig" --directory "$state/volumes"
until_true 30 test -S "$socket"
start kubelet "$bin/kubelet" --config "$state/kubelet.yaml" --kubeconfig "$state/kubelet.kubeconfig" --root-dir "$state/kubelet" \
  --cert-dir "$state/kubelet/pki" --hostname-override "$NODE_NAME" --node-ip "$node_ip" --v=2
while :; do wait -n || sleep 1; done
