#!/usr/bin/env bash
# Makes what `make demo` needs, and says what that is and how far it is. What is up to date
# already is left alone.
#
#   DEMO_CLUSTER=current   without a cluster of the tour's own
#   KEEP=1                 with the program ensign, by which the tour says to look on
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source hack/steps.sh

total=4
[[ -z ${DEMO_CLUSTER:-} ]] || total=2
programs=(manager)
[[ ${KEEP:-0} != 1 ]] || programs+=(ensign)

# outlook says before anything is built what is, how long that takes, and how to do without.
outlook() {
  local context
  if [[ -z ${DEMO_CLUSTER:-} ]] && command -v kubectl >/dev/null && kubectl --request-timeout=3s get --raw /readyz >/dev/null 2>&1; then
    context=$(kubectl config current-context 2>/dev/null) || context='of KUBECONFIG'
    printf 'A cluster answers here: %s. On it the tour needs no Kubernetes of its own, and works in a namespace that it removes:\n' "$context"
    printf '    make demo DEMO_CLUSTER=current KUBECONFIG=%s\n' "${KUBECONFIG:-$HOME/.kube/config}"
  fi
  [[ -x bin/manager ]] || printf 'To build: bin/manager, 1 to 2 minutes\n'
  [[ -d .venv ]] || printf 'To install: Ansible, about 1 minute, beside the builds\n'
  if ((total == 4)) && [[ ! -x bin/controlplane/kube-apiserver ]]; then
    printf 'To build, unless KUBEBUILDER_ASSETS or PATH has it: Kubernetes, 5 to 12 minutes on two cores. A line below says every 20 seconds how long is left.\n'
    # shellcheck disable=SC2016 # For the reader's shell.
    printf 'Sooner: export KUBEBUILDER_ASSETS=$(setup-envtest use --print path), where setup-envtest is.\n'
  fi
}

ansible() {
  printf '==> 1/%d, beside the others: Ansible and its tools, into .venv\n' "$total"
  make python
  printf '==> 1/%d done after %d s: Ansible\n' "$total" "$SECONDS"
}

outlook

# Ansible mostly waits for its index. The others compile many of the same packages, and so
# do it one after the other. In a group of its own, so that it ends as a whole.
set -m
ansible &
python=$!
set +m
trap 'kill -- "-$python" 2>/dev/null || true' EXIT
step "2/$total ${programs[*]/#/bin/}" make "${programs[@]}"
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
