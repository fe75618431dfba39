#!/usr/bin/env bash
# Writes certificates, kubeconfigs and the configuration of containerd, CNI, kubelet
# and kube-proxy into $NODE_WORK/state.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
umask 077
pki=$state/pki
mkdir -p "$pki" "$state/cni/net.d"
: >"$state/resolv.conf" # CoreDNS has no server above it.

key() { openssl ecparam -genkey -name prime256v1 -noout -out "$pki/$1.key" 2>/dev/null; }

# sign NAME SUBJECT USAGE [SAN] makes a certificate of the cluster's CA.
sign() {
  key "$1"
  { printf 'extendedKeyUsage=%s\n' "$3"; [[ -z ${4:-} ]] || printf 'subjectAltName=%s\n' "$4"; } >"$pki/$1.ext"
  openssl req -new -key "$pki/$1.key" -subj "$2" 2>/dev/null |
    openssl x509 -req -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -CAcreateserial -days 30 -extfile "$pki/$1.ext" -out "$pki/$1.crt" 2>/dev/null
}

# kubeconfig NAME SUBJECT makes a client certificate and a kubeconfig that holds it.
kubeconfig() {
  sign "$1" "$2" clientAuth
  cat >"$state/$1.kubeconfig" <<YAML
apiVersion: v1
kind: Config
current-context: node
contexts: [{name: node, context: {cluster: node, user: $1}}]
clusters: [{name: node, cluster: {server: "https://$node_ip:$api_port", certificate-authority-data: $(base64 -w0 "$pki/ca.crt")}}]
users: [{name: $1, user: {client-certificate-data: $(base64 -w0 "$pki/$1.crt"), client-key-data: $(base64 -w0 "$pki/$1.key")}}]
YAML
}

key ca
openssl req -x509 -new -key "$pki/ca.key" -subj "/CN=$NODE_NAME" -days 30 -out "$pki/ca.crt" 2>/dev/null
key sa
sign apiserver /CN=kube-apiserver serverAuth \
  "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,IP:$node_ip,IP:10.96.0.1"
sign kubelet-client /O=system:masters/CN=apiserver-kubelet-client clientAuth
kubeconfig admin /O=system:masters/CN=admin
kubeconfig kubelet "/O=system:nodes/CN=system:node:$NODE_NAME"
kubeconfig controller-manager /CN=system:kube-controller-manager
kubeconfig scheduler /CN=system:kube-scheduler
kubeconfig proxy /CN=system:kube-proxy
kubeconfig provisioner /CN=ensign:provisioner

cat >"$state/containerd.toml" <<TOML
version = 2
root = "$state/containerd/root"
state = "$state/containerd/state"
disabled_plugins = ["io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]
[grpc]
  address = "$socket"
[plugins."io.containerd.internal.v1.opt"]
  path = "$state/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$pause_image"
  # Machines that are containers themselves have no CAP_SYS_RESOURCE.
  restrict_oom_score_adj = true
  disable_apparmor = true
  # Where registries are, for those who have one: README.md.
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "$NODE_WORK/registries"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$state/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "$(command -v runc)"
        SystemdCgroup = false
TOML
cat >"$state/cni/net.d/10-bridge.conflist" <<JSON
{"cniVersion": "0.4.0", "name": "$NODE_NAME", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "$state/cni/ipam", "ranges": [[{"subnet": "$pod_cidr"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
JSON
cat >"$state/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
cgroupRoot: /$NODE_NAME
failCgroupV1: false
failSwapOn: false
containerRuntimeEndpoint: unix://$socket
clusterDomain: cluster.local
clusterDNS: ["10.96.0.10"]
resolvConf: "$state/resolv.conf"
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $pki/ca.crt}}
authorization: {mode: Webhook}
enforceNodeAllocatable: [pods]
# The machine's disk and memory are not this node's to judge; limits of pods are.
evictionHard: {memory.available: "0%", nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%", imagefs.inodesFree: "0%"}
# Nothing could bring an image back.
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
maxOpenFiles: 20000
oomScoreAdj: 0
volumePluginDir: $state/kubelet/volume-plugins
podLogsDir: /var/log/pods
YAML
cat >"$state/proxy.yaml" <<YAML
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clusterCIDR: $pod_cidr
hostnameOverride: $NODE_NAME
oomScoreAdj: 0
clientConnection: {kubeconfig: $state/proxy.kubeconfig}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
YAML
