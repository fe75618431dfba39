#!/usr/bin/env bash
# Makes what `make demo` needs, and says what that is and how far it is. What is up to date
# already is left alone.
#
#   DEMO_CLUSTER=current   without a cluster of the tour's own
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source hack/steps.sh

total=4
[[ -z ${DEMO_CLUSTER:-} ]] || total=2

ansible() {
  printf '==> 1/%d, beside the others: Ansible and its tools, into .venv\n' "$total"
  make python
  printf '==> 1/%d done after %d s: Ansible\n' "$total" "$SECONDS"
}

# Ansible mostly waits for its index. The others compile many of the same packages, and so
# do it one after the other. In a group of its own, so that it ends as a whole.
set -m
ansible &
python=$!
set +m
trap 'kill -- "-$python" 2>/dev/null || true' EXIT
step "2/$total bin/manager and bin/ensign" make manager ensign
if ((total == 4)); then
  step "3/4 Kubernetes, into bin/controlplane" make controlplane
  step "4/4 bin/devcluster" make bin/devcluster
fi
wait "$python" || {
  printf '==> 1/%d FAILED: Ansible; what it said stands above\n' "$total" >&2
  exit 1
}
trap - EXIT
printf '==> the programs of the tour are there after %d s\n' "$SECONDS"
