#!/usr/bin/env bash
# Runs test/node: brings a node up, builds and imports the images, runs the suite, and takes
# the node down again.
#   SHORT=1      the specs with the label "short" alone
#   LONG=1       those with the label "long" too, which take half an hour, and clients of etcd
#                for three times ten minutes instead of one
#   KEEP=1       leaves the node up; the next call takes it as it is
#   FOCUS=regexp chooses specs; those before them, which they need, are to have run (KEEP=1)
# Exit code 77: this machine cannot run a node.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

flags=(-ginkgo.v -ginkgo.no-color)
if [[ -n ${SHORT:-} ]]; then
  flags+=(-ginkgo.label-filter=short)
elif [[ -z ${LONG:-} ]]; then
  flags+=(-ginkgo.label-filter='!long')
fi
[[ -z ${FOCUS:-} ]] || flags+=(-ginkgo.focus="$FOCUS")
limit=90m
[[ -z ${LONG:-} ]] || flags+=(-etcd-load=10m -etcd-rounds=3) limit=150m

"$here/check.sh"
[[ -n ${KEEP:-} ]] || trap '"$here/node.sh" down' EXIT
"$here/node.sh" up
"$here/image.sh" product
"$here/image.sh" mysql
[[ -n ${SHORT:-} ]] || { "$here/image.sh" mariadb && "$here/image.sh" fixture && "$here/image.sh" generated && "$here/image.sh" hybrid && "$here/image.sh" etcd; }
if [[ -n ${SHORT:-} ]]; then "$here/image.sh" visitors ansible; else "$here/image.sh" visitors ansible helm go; fi
say "the images are in the node"
cd "$root"
export ENSIGN_NODE_IMAGE=ensign:node NODE_NAME NODE_WORK NODE_NET PATH=$controlplane:$root/.venv/bin:$PATH
go test -tags node -count=1 -timeout "$limit" ./test/node -v "${flags[@]}"
say "test/node passed"
