#!/usr/bin/env bash
# Says whether this machine can run a node, and what it lacks.
#   check.sh          exit code 0: it can; 77: it cannot; 1: Debian packages are missing
#   check.sh install  installs the missing packages
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

machine() {
  [[ $(uname -s) == Linux ]] || cannot "it is no Linux"
  [[ $(uname -m) == x86_64 || $(uname -m) == aarch64 ]] || cannot "its processor is a $(uname -m)"
  ((EUID == 0)) || cannot "it takes root (sudo --preserve-env=PATH,GOPATH,HOME make test-node)"
  command -v apt-get >/dev/null || cannot "its packages come from Debian or a relative, and there is no apt-get"
  unshare --mount --pid --fork --net true 2>/dev/null || cannot "it may not make mount, PID and network namespaces"
  [[ ! -f /sys/fs/cgroup/cgroup.controllers ]] || cannot "it has cgroup v2 alone, for which init.sh has no code yet"
  [[ -w /sys/fs/cgroup/memory && -w /sys/fs/cgroup/cpu && -w /sys/fs/cgroup/pids ]] ||
    cannot "the controllers memory, cpu and pids below /sys/fs/cgroup are not there, or not to be written"
  grep -qw overlay /proc/filesystems || modprobe overlay 2>/dev/null || cannot "its kernel has no overlay file system"
}

# A disk that fills up while images are imported is found out late, and by an error of containerd.
room() {
  local free
  mkdir -p "$NODE_WORK"
  free=$(df --output=avail --block-size=1G "$NODE_WORK" | tail -n 1)
  ((free >= 10)) || die "$((free)) GB are free in $NODE_WORK; a node and its images take 10. Remove what is not needed, such as Go's cache (go clean -cache)"
}

machine
room
missing=()
for package in "${packages[@]}"; do
  [[ $(dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0
command="apt-get install --yes --no-install-recommends ${missing[*]}"
[[ ${1:-} == install ]] || die "Debian packages are missing: $command (or: hack/node/check.sh install)"
say "$command"
mkdir -p "$logs"
(apt-get update && DEBIAN_FRONTEND=noninteractive $command) >"$logs/apt.log" 2>&1 || die "apt-get failed, see $logs/apt.log"
