#!/usr/bin/env bash
# Brings images into the node, without any registry.
#
#   image.sh program PROGRAM NAME   of one static program
#   image.sh mysql                  mysql:8.4 and mysql:9.7, a stand-in for both: Debian sid's MySQL server
#   image.sh mariadb                two servers that differ: mysql:10.11 and mysql:11.8, stand-ins: Debian's MariaDB;
#                                   mysql:12.0, which does not know one of its options; and mysql:12.1, that of mysql:9.7
#   image.sh product                ensign:node, of the Dockerfile
#   image.sh fixture                ensign-cafe:node, an operator FROM the Dockerfile's target base
#   image.sh project DIR [NAME]     an author's project, FROM the same base; NAME is by default what the
#                                   project's Makefile deploys, or DIR:dev
#   image.sh generated              shop:node, FROM the same base: a project of init and create api as it
#                                   comes, in NODE_WORK/state/shop, and the program that made it beside it
#   image.sh hybrid                 hybrid:node, of examples/hybrid, and memcached:1.6 and memcached:1.6-alpine, a stand-in: Debian's memcached
#   image.sh visitors [VARIANT…]    visitors:1.0, of examples/visitors/app, and visitors-VARIANT:node of operators there
#   image.sh etcd                   quay.io/coreos/etcd of the versions in etcd/: their three programs alone; and
#                                   etcd-operator:node, of examples/etcd
#
# The last seven are built by hack/image/builder.sh on stand-ins of the images that the
# Dockerfile names. What they prove is its steps, not the published bases.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$root/hack/image/builder.sh"

# take brings an archive into containerd. ctr warns of cgroup v1 at each call.
take() { ctr images import "$1" >"$logs/ctr.out" 2>&1 || die "containerd did not take $2: $(tail -n 1 "$logs/ctr.out")"; }

# pack NAME CONFIG TAR… imports an image of root file systems, one above the other.
# NAME may be several, with commas between. CONFIG: JSON fields of its configuration.
pack() {
  local name=$1 config=$2 work i tars names digests='' layers='' architecture
  shift 2
  tars=("$@") names=()
  for i in "${tars[@]}"; do [[ -f $i ]] || die "$i is no archive; remove it, it is made again"; done
  architecture=$(go env GOHOSTARCH)
  mkdir -p "$state"
  work=$(mktemp -d -p "$state")
  for i in "${!tars[@]}"; do
    ln -s "$(realpath "${tars[i]}")" "$work/layer$i.tar"
    digests+=",\"sha256:$(sha256sum <"${tars[i]}" | cut -d' ' -f1)\""
    layers+=",\"layer$i.tar\""
    names+=("layer$i.tar")
  done
  printf '{"architecture":"%s","os":"linux","config":{"Env":["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],%s},"rootfs":{"type":"layers","diff_ids":[%s]}}' \
    "$architecture" "$config" "${digests#,}" >"$work/config.json"
  printf '[{"Config":"config.json","RepoTags":["%s"],"Layers":[%s]}]' "${name//,/'","'}" "${layers#,}" >"$work/manifest.json"
  tar -C "$work" -h -cf "$work/image.tar" manifest.json config.json "${names[@]}"
  take "$work/image.tar" "$name"
  rm -r "$work"
}

program() {
  local work
  work=$(mktemp -d -p "$state")
  mkdir "$work/root"
  cp "$1" "$work/root/"
  tar -C "$work/root" --owner=0 --group=0 -cf "$work/program.tar" .
  pack "$2" "\"Entrypoint\":[\"/$(basename "$1")\"]" "$work/program.tar"
  rm -r "$work"
}

# rootfs FILE SUITE PACKAGES makes a root file system of Debian's packages, once.
rootfs() {
  [[ ! -s $images/$1 ]] || return 0
  say "fetching $1: Debian $2 with $3"
  mkdir -p "$images"
  # The Release file of sid may have expired on a mirror.
  mmdebstrap --quiet --format=tar --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' --include="$3" "$2" "$images/$1.new" ||
    die "mmdebstrap could not make $1 of Debian $2; is a mirror reachable?"
  mv "$images/$1.new" "$images/$1"
}

mysql() {
  rootfs mysql-sid.tar sid mysql-server,mysql-client,ca-certificates
  tar -C "$here/mysql" --owner=0 --group=0 -cf "$images/mysql-entry.tar" .
  pack mysql:8.4,mysql:9.7,mysql:12.1 '"Entrypoint":["docker-entrypoint.sh"],"Cmd":["mysqld"],"Volumes":{"/var/lib/mysql":{}}' \
    "$images/mysql-sid.tar" "$images/mysql-entry.tar"
}

mariadb() {
  local entry='"Entrypoint":["docker-entrypoint.sh"],"Cmd":["mysqld"],"Volumes":{"/var/lib/mysql":{}}' packages=mariadb-server,mariadb-client,ca-certificates work
  rootfs mariadb-bookworm.tar bookworm "$packages"
  rootfs mariadb-trixie.tar trixie "$packages"
  work=$(mktemp -d -p "$state")
  cp -r "$here/mariadb" "$work/root"
  mkdir -p "$work/root/usr/local/bin"
  cp "$here/mysql/usr/local/bin/docker-entrypoint.sh" "$work/root/usr/local/bin/"
  ln -s /usr/bin/mariadb "$work/root/usr/local/bin/mysql"
  ln -s /usr/bin/mariadb-admin "$work/root/usr/local/bin/mysqladmin"
  tar -C "$work/root" --owner=0 --group=0 -cf "$work/entry.tar" .
  pack mysql:10.11 "$entry" "$images/mariadb-bookworm.tar" "$work/entry.tar"
  pack mysql:11.8 "$entry" "$images/mariadb-trixie.tar" "$work/entry.tar"
  sed -i '/^\[mysqld\]/a an-option-that-has-gone=1' "$work/root/etc/mysql/my.cnf"
  tar -C "$work/root" --owner=0 --group=0 -cf "$work/broken.tar" .
  pack mysql:12.0 "$entry" "$images/mariadb-trixie.tar" "$work/broken.tar"
  rm -r "$work"
}

# import NAME brings what was built into the node.
import() {
  local archive=$state/import.tar
  rm -f "$archive"
  bb push --quiet "$1" "docker-archive:$archive:$1" >/dev/null
  take "$archive" "$1"
  rm "$archive"
  say "imported $1"
}

product() {
  image_stand_ins
  image_build '' ensign:node
  import ensign:node
}

fixture() {
  image_stand_ins
  image_build base ensign-base
  image_bud ensign-cafe:node "$root/test/node/testdata/operator" --build-arg BASE_IMAGE=ensign-base
  import ensign-cafe:node
}

# project_name DIR prints what the project's Makefile calls its image, else the directory's name.
project_name() {
  local name
  name=$(sed -nE 's/^IMG *\??= *([^ $]+) *$/\1/p' "$1/Makefile" 2>/dev/null | head -n 1)
  printf '%s\n' "${name:-$(basename "$1"):dev}"
}

project() {
  local dir name from=()
  [[ -n ${1:-} && -f $1/Dockerfile ]] || die "${1:-} has no Dockerfile: name the directory of an operator's project, make node-load DIR=../shop"
  dir=$(cd "$1" && pwd -P)
  name=${2:-$(project_name "$dir")}
  alive || die "the node is not up: make node-up"
  image_check
  image_stand_ins
  image_build base ensign-base
  # Whatever its only FROM names: a project of another base image is tried on this one.
  (($(grep -ciE '^[[:space:]]*FROM[[:space:]]' "$dir/Dockerfile") > 1)) || from=(--from ensign-base)
  say "building $name of $dir, FROM ensign-base"
  # The container that compiles a project in Go does not see a clone that go.mod replaces a module by.
  [[ ! -f $dir/go.mod ]] || go -C "$dir" mod vendor -o .vendor
  image_bud "$name" "$dir" "${from[@]+"${from[@]}"}" --build-arg BASE_IMG=ensign-base
  [[ ! -f $dir/go.mod ]] || rm -r "$dir/.vendor"
  import "$name"
  say "deploy it: export KUBECONFIG=$KUBECONFIG, then in $dir: make deploy IMG=$name"
  say "where it runs already: kubectl rollout restart deployment --namespace its namespace"
}

generated() {
  local ensign=$state/ensign
  (cd "$root" && go build -o "$state" ./cmd/chart-exec ./cmd/ensign)
  rm -rf "$state/shop"
  mkdir "$state/shop"
  (
    cd "$state/shop"
    "$ensign" init --domain example.org --project-name shop
    "$ensign" create api --group stock --version v1 --kind Shelf --generate-role --finalizer
    "$ensign" create api --group stock --version v1 --kind Till --generate-playbook
    "$ensign" create api --group stock --version v1 --kind Hello --chart "$root/examples/hello/charts/hello"
  ) >"$logs/generated.out" 2>&1 || die "init and create api made no project: $(tail -n 3 "$logs/generated.out")"
  project "$state/shop" shop:node
}

hybrid() {
  rootfs memcached.tar bookworm memcached
  tar -C "$here/memcached" --owner=0 --group=0 -cf "$images/memcached-entry.tar" .
  pack memcached:1.6,memcached:1.6-alpine '"Entrypoint":["docker-entrypoint.sh"],"Cmd":["memcached"]' "$images/memcached.tar" "$images/memcached-entry.tar"
  project "$root/examples/hybrid" hybrid:node
}

visitors() {
  local variant
  image_check
  image_stand_ins
  image_bud visitors:1.0 "$root/examples/visitors/app"
  import visitors:1.0
  (cd "$root" && go build -o "$state" ./cmd/chart-exec ./cmd/ensign)
  for variant in "$@"; do project "$root/examples/visitors/$variant" "visitors-$variant:node"; done
}

# etcd packs the programs as the published images have them: on the PATH, and no shell beside them.
etcd() {
  local module name version work
  "$here/build.sh" etcd
  for module in "$here"/etcd/*/; do
    name=etcd-$(basename "$module")
    version=$(go -C "$module" list -m -f '{{.Version}}' go.etcd.io/etcd/server/v3)
    work=$(mktemp -d -p "$state")
    mkdir -p "$work/root/usr/local/bin"
    cp "$bin/$name"/etcd{ctl,utl} "$work/root/usr/local/bin/"
    cp "$bin/$name/server" "$work/root/usr/local/bin/etcd" # Go names it after its folder.
    tar -C "$work/root" --owner=0 --group=0 -cf "$work/root.tar" .
    pack "quay.io/coreos/etcd:$version" '"Cmd":["etcd"]' "$work/root.tar"
    rm -r "$work"
  done
  project "$root/examples/etcd" etcd-operator:node
}

case ${1:-} in
mysql | mariadb | product | fixture | generated | hybrid | visitors | etcd) alive || die "the node is not up: make node-up" ;;
esac
case ${1:-} in
program | mysql | mariadb | product | fixture | project | generated | hybrid | visitors | etcd) "$@" ;;
*) die "usage: hack/node/image.sh program PROGRAM NAME | mysql | mariadb | product | fixture | project DIR [NAME] | generated | hybrid | visitors [VARIANT…] | etcd" ;;
esac
