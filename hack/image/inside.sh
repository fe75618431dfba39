#!/usr/bin/env bash
# Runs a command in the file system of an image, as a container would, but without a container
# runtime: in namespaces of its own for mounts and processes.
#
#   hack/image/inside.sh ROOT [OPTION…] -- COMMAND…
#
#   --env NAME=VALUE    a variable of the image, or a further one; nothing else is in the environment
#   --user UID:GID      the user; 0:0 if not given
#   --dir DIRECTORY     the working directory; / if not given
#   --read-only         nothing but /tmp can be written to
#   --offline           there is no network at all
#   --bind FROM=TO      a file or directory of the machine, at /tmp/TO
set -euo pipefail

root=$1 user=0:0 dir=/ mode=rw variables=() binds=() apart=(--mount --pid)
shift
while [[ $1 != -- ]]; do
  case $1 in
  --env) variables+=("$2") && shift ;;
  --user) user=$2 && shift ;;
  --dir) dir=$2 && shift ;;
  --bind) binds+=("$2") && shift ;;
  --read-only) mode=ro ;;
  --offline) apart+=(--net) ;;
  *) printf 'inside.sh: unknown option "%s"; see the head of the file\n' "$1" >&2 && exit 2 ;;
  esac
  shift
done
shift
export root user dir mode bound="${binds[*]}"

# shellcheck disable=SC2016 # The inner shell expands it.
exec unshare "${apart[@]}" --fork --kill-child -- bash -euo pipefail -c '
  mount --make-rprivate /
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
  for bind in $bound; do
    to=$root/tmp/${bind#*=}
    if [[ -d ${bind%%=*} ]]; then mkdir -p "$to"; else touch "$to"; fi
    mount --bind "${bind%%=*}" "$to"
  done
  [[ $mode == rw ]] || mount -o remount,ro,bind "$root"
  # An interrupt of the terminal reaches the command; env -i leaves it what it was given.
  exec env -i "${@:1:$0}" chroot --userspec="$user" --groups= "$root" \
    /bin/sh -c "cd \"\$0\" && exec \"\$@\"" "$dir" "${@:$0+1}"' "${#variables[@]}" "${variables[@]}" "$@"
