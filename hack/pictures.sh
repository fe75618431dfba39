#!/usr/bin/env bash
# Draws the pictures of docs/images from what the programs really print, on a cluster of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
export KUBECONFIG=$work/kubeconfig PATH=$root/bin:$root/bin/controlplane:$root/.venv/bin:$PATH
bin/devcluster --kubeconfig "$KUBECONFIG" >"$work/cluster.log" &
cluster=$!
trap 'kill $cluster; wait $cluster || true; rm -rf "$work"' EXIT
until kubectl get --raw /readyz >/dev/null 2>&1; do kill -0 $cluster; sleep 0.2; done

mkdir "$work/banner-operator"
cd "$work/banner-operator"
{
	ensign init --domain example.com
	ensign create api --group web --version v1 --kind Banner --generate-role
	cat >>roles/banner/tasks/main.yml <<-'YAML'

	- name: Read what the Service shows
	  kubernetes.core.k8s_info:
	    kind: Secret
	    name: banner-words
	    namespace: "{{ ansible_operator_meta.namespace }}"
	  register: banner_words

	- name: Welcome the world, where that is asked for
	  ansible.builtin.debug:
	    msg: Hello, world
	  when: message == 'world'

	- name: Require the words
	  ansible.builtin.assert:
	    that: banner_words.resources | length == 1
	    fail_msg: "The Secret banner-words does not exist: create it with the key text"
	YAML
	make install
	kubectl create secret generic banner-words --from-literal=text=Hello
	kubectl apply -k config/samples
} >/dev/null
export ANSIBLE_GATHERING=explicit
mkdir -p "$root/docs/images"
# The second run is shown: it is warm.
(
	kubectl wait --for=condition=Successful banner/banner-sample --timeout=180s
	kubectl delete secret/banner-words
	kubectl patch banner/banner-sample --type=merge --patch='{"spec": {"message": "Good morning"}}'
) >/dev/null &
run=(manager run --metrics-bind-address=0 --health-probe-bind-address=0 --user-metrics-bind-address=0 --max-backoff=1h)
FROM='generation 2' UNTIL='failed \(.*warm[^$]*key text' python "$root/hack/picture.py" "$root/docs/images/log.svg" 'manager run' "${run[@]}"

# Beside the one that fails, one that succeeds and one that is suspended.
"${run[@]}" >"$work/manager.log" 2>&1 &
manager=$!
{
	kubectl create namespace shop
	kubectl create secret generic banner-words --namespace=shop --from-literal=text=Hello
	for name in opening sale; do sed "s/banner-sample/$name/" config/samples/web_v1_banner.yaml | kubectl apply --namespace=shop -f -; done
	kubectl wait --for=condition=Successful --all banners --namespace=shop --timeout=180s
	ensign reconcile banner/banner-sample --wait || true # It fails.
	ensign suspend banner/sale --namespace=shop --wait
} >/dev/null 2>&1
python "$root/hack/picture.py" "$root/docs/images/status.svg" 'ensign status' ensign status
kill $manager
wait $manager || true
