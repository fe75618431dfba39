#!/usr/bin/env bash
# Builds the two images of the Dockerfile, and an operator FROM the base image, on stand-ins of
# the images that they name; then checks what people who build FROM the base image rely on,
# and what a review of the other one asks for. It needs root and Debian's buildah and
# mmdebstrap, and says so where they are not there (exit code 77).
#
#   hack/image/test.sh            everything
#   UPDATE=1 hack/image/test.sh   writes hack/image/golden/ anew, instead of comparing with it
#
# The images are of the processor of this machine only. See docs/howto-base-image.md for what is
# not tried here.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
cd "$here/../.."
source hack/steps.sh
source hack/image/builder.sh
operator=test/node/testdata/operator

exec </dev/null # Ansible refuses one that does not block, as some terminals and tools give.
image_check
[[ -x .venv/bin/python && -x bin/controlplane/kubectl ]] ||
  { image_say 'run make image-test: it makes .venv and bin/controlplane first' && exit 1; }

# configured NAME prints the image's configuration as JSON.
configured() { bb inspect --type image "$1" | python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin)["OCIv1"]["config"]))'; }

# inside IMAGE [OPTION…] -- COMMAND… runs a command with the image's environment and directory.
inside() {
  local image=$1 options=() entry
  shift
  while read -r entry; do options+=(--env "$entry"); done < <(configured "$image" | python3 -c 'import json, sys
print(*json.load(sys.stdin)["Env"], sep="\n")')
  hack/image/inside.sh "${roots[$image]}" "${options[@]}" --dir /opt/ansible "$@"
}

# fails COMMAND… is true when the command fails.
fails() { if "$@" >/dev/null 2>&1; then printf 'this succeeded, and must not: %s\n' "$*" >&2 && return 1; fi; }

build() {
  export VERSION=test COMMIT=0000000
  image_stand_ins
  image_build base ensign-base
  image_build '' ensign
  # As an author would do it, who knows the base image only by its name.
  image_bud ensign-operator "$operator" --build-arg BASE_IMAGE=ensign-base
  image_bud ensign-operator-root hack/image --file hack/image/root.Dockerfile
  image_of_chart ensign-operator-chart examples/hello charts/hello
  archives=$(mktemp -d)
  tar -czf "$archives/hello.tgz" -C examples/hello/charts hello
  image_of_chart ensign-operator-archive "$archives" hello.tgz
  python3 -m http.server --bind 127.0.0.1 --directory "$archives" 18090 >/dev/null 2>&1 &
  server=$!
  until curl -fsS http://127.0.0.1:18090/ >/dev/null 2>&1; do kill -0 "$server"; sleep 0.1; done
  image_of_chart ensign-operator-url "$archives" http://127.0.0.1:18090/hello.tgz
}

# image_of_chart NAME CONTEXT CHART [ARGUMENT…] builds the image of a chart alone, as its author would do it.
image_of_chart() {
  image_bud "$1" "$2" --file hack/image/chart.Dockerfile --build-arg HELM_CHART="$3" \
    --build-arg API_VERSION=demo.example.com/v1 --build-arg KIND=Hello "${@:4}"
}

# golden IMAGE compares its configuration, files and modes with hack/image/golden/IMAGE.txt.
golden() {
  local file=hack/image/golden/$1.txt
  [[ -z ${UPDATE:-} ]] || configured "$1" | python3 hack/image/describe.py "${roots[$1]}" >"$file"
  diff -u "$file" <(configured "$1" | python3 hack/image/describe.py "${roots[$1]}") ||
    { printf '%s differs from %s; if that is meant: UPDATE=1 hack/image/test.sh\n' "$1" "$file" >&2 && return 1; }
}

# size compares what an image adds to its base, in MB, with a limit: measured, and a tenth more.
# A program that is named is measured on its own, with a limit of its own.
size() {
  local image=$1 limit=$2 program=${3:-} added
  added=$(($(du -sxm "${roots[$image]}" | cut -f1) - $(du -sxm "${roots[$python_image]}" | cut -f1)))
  if [[ -n $program ]]; then
    local alone
    alone=$(du -sm "${roots[$image]}/usr/local/bin/$program" | cut -f1)
    printf '%s has %s with %d MB; the limit is %d\n' "$image" "$program" "$alone" "$4"
    ((alone <= $4))
    added=$((added - alone))
  fi
  printf '%s adds %d MB to its base%s; the limit is %d\n' "$image" "$added" "${program:+ beside $program}" "$limit"
  ((added <= limit))
}

# Every python3 that is found by a path or by PATH has what modules need.
pythons() {
  local image python
  for image in ensign-base ensign; do
    for python in python3 /usr/bin/python3 /usr/local/bin/python3; do
      inside "$image" --user 1001:0 -- "$python" -c 'import ansible, ansible_runner, kubernetes, jsonpatch; print(ansible.__file__)'
    done | uniq -c
  done
}

bytecode() {
  for image in ensign-base ensign; do
    inside "$image" --bind "$here/bytecode.py=bytecode.py" -- python3 /tmp/bytecode.py
  done
}

hardened() {
  local program
  for program in pip pip3 gcc cc make curl; do fails inside ensign -- sh -c "command -v $program"; done
  fails inside ensign -- python3 -m pip --version
  fails inside ensign -- python3 -m ensurepip --version
  fails grep -q '^Writable' hack/image/golden/ensign.txt
  inside ensign --user 1001:0 --read-only -- ansible localhost -m ansible.builtin.command -a 'echo read-only works'
  inside ensign --user 1000650000:0 --read-only -- ansible localhost -m ansible.builtin.command -a 'echo any user works'
}

# A user that the cluster chose, as OpenShift does, has group 0.
any_user() {
  for image in ensign-base ensign-operator; do
    inside "$image" --user 1000650000:0 -- sh -c 'touch "$HOME/here" "$HOME/.ansible/tmp/here" && rm "$HOME/here" "$HOME/.ansible/tmp/here"'
    inside "$image" --user 1000650000:0 --env ANSIBLE_LOCAL_TEMP=/opt/ansible/.ansible/tmp \
      --env ANSIBLE_REMOTE_TEMP=/opt/ansible/.ansible/tmp -- ansible localhost -m ansible.builtin.command -a 'echo home is writable'
  done
  fails inside ensign --user 1000650000:0 -- touch /opt/ansible/here
}

programs() {
  local image command
  for image in ensign-base ensign-operator; do
    inside "$image" --user 1001:0 -- /tini -- /usr/local/bin/ansible-operator run --watches-file=./watches.yaml --help >/dev/null
    for command in 'ansible-operator version' 'manager version' 'curl --version' 'pip --version' 'ansible-galaxy --version'; do
      # shellcheck disable=SC2086 # Words.
      inside "$image" --user 1001:0 -- $command | sed -n 1p
    done
  done
  inside ensign --user 1001:0 -- /usr/bin/tini -- /usr/local/bin/manager version | grep -x 'manager test (commit 0000000)'
}

# Without any network: what the base image has satisfies what operators ask for.
galaxy() {
  local work
  work=$(mktemp -d)
  printf 'collections:\n- {name: kubernetes.core, version: ">=5.3.0"}\n- {name: operator_sdk.util, version: "0.5.0"}\n' >"$work/requirements.yml"
  inside ensign-base --user 1001:0 --offline --bind "$work/requirements.yml=requirements.yml" -- \
    ansible-galaxy collection install -r /tmp/requirements.yml
  rm -r "$work"
}

# What an operator installed, as the base image's user or as root, is found.
installed() {
  inside ensign-operator --user 1000650000:0 -- python3 -c 'import inflection; print(inflection.__file__)'
  inside ensign-operator --user 1000650000:0 -- ansible localhost -m demo.cafe.plural -a word=image
  inside ensign-operator-root --user 1001:0 -- python3 -c 'import inflection; print(inflection.__file__)'
  inside ensign-operator-root --user 1001:0 -- jq --version
}

# The manager takes the watches that the arguments made, and goes on to look for a cluster.
of_a_chart() {
  local image
  for image in chart archive url; do
    inside "ensign-operator-$image" --user 1000650000:0 -- sh -c 'cat watches.yaml && ! ansible-operator run --watches-file=./watches.yaml' 2>&1 |
      grep -A 99 'kind: "Hello"' | grep 'find the API server'
  done
}

# What an author gets wrong ends the build with words, before there is an image that cannot start.
wrong_chart() {
  refused "API_VERSION='v1': give a group and a version" charts/hello --build-arg API_VERSION=v1
  refused 'KIND is missing' charts/hello --build-arg KIND=
  refused 'HELM_CHART is not a chart' rbac
}

# refused TEXT CHART [ARGUMENT…] is true when no image is made of the chart, and a line of the build
# begins with the text. Lines that show the Dockerfile begin otherwise.
refused() {
  fails image_of_chart ensign-operator-wrong examples/hello "${@:2}"
  grep "^$1" "$IMAGE_WORK/build.log"
}

# For each architecture that the images are built for, the index has a wheel of what is locked.
wheels() {
  local work arch
  work=$(mktemp -d)
  for arch in x86_64 aarch64; do
    .venv/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
      --implementation cp --python-version 3.13 --platform "manylinux2014_$arch" --platform "manylinux_2_28_$arch" \
      -r requirements.txt -d "$work/$arch"
    printf '%s: %s\n' "$arch" "$(compgen -G "$work/$arch/*_$arch.whl" | wc -l) wheels of its own"
  done
  rm -r "$work"
}

# Where a container of each image is mounted.
declare -A roots
containers=()
# What serves the archive of a chart, and the directory that has it.
server='' archives=''

finish() {
  ((!${#containers[@]})) || bb rm "${containers[@]}" >/dev/null
  [[ -z $server ]] || kill "$server" || true
  [[ -z $archives ]] || rm -r "$archives"
}
trap finish EXIT

# mount_image NAME is no command of a substitution: what it remembers is removed at the end.
mount_image() {
  containers+=("$(bb from --pull-never "$1")")
  roots[$1]=$(bb mount "${containers[-1]}")
}

began=$SECONDS
build
for image in "$python_image" ensign-base ensign ensign-operator ensign-operator-root ensign-operator-{chart,archive,url}; do mount_image "$image"; done
step 'ensign-base: configuration, files, modes' golden ensign-base
step 'ensign: configuration, files, modes' golden ensign
step 'ensign-base: size' size ensign-base 250 chart-exec 62
step 'ensign: size' size ensign 220
step 'every python3 has kubernetes' pythons
step 'bytecode is compiled' bytecode
step 'ensign: no compiler, no pip, nothing to write to, read-only root' hardened
step 'a user that the cluster chooses' any_user
step 'names of the programs' programs
step 'ansible-galaxy asks nobody' galaxy
step 'collections and packages of an operator' installed
step 'an operator of a chart alone: a directory, an archive, a URL' of_a_chart
step 'a chart that is none ends the build with words' wrong_chart
step 'wheels for both architectures' wheels
step 'runs in the images, on a control plane' hack/image/live.sh "${roots[ensign]}" "${roots[ensign-operator]}"
printf 'image-test passed in %d s\n' $((SECONDS - began))
