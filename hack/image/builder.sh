# Sourced by scripts that build the Dockerfile without a Docker engine and without an image
# registry: with buildah, on stand-ins for the images that the Dockerfile names.
#
#   image_check                    says what this machine lacks and how to get it; exit code 77
#   image_stand_ins                makes the stand-ins, once; nobody else builds in IMAGE_WORK from now on
#   image_build TARGET NAME        builds a target of the Dockerfile ("" = the last one) as NAME
#   bb SUBCOMMAND…                 buildah with the store of $IMAGE_WORK
#
# IMAGE_WORK keeps the store and the stand-ins between calls: 3 GB at first, 10 GB at most between builds.

# Go and buildah keep their files there. If it is not set, a shell knows it from the account.
export HOME=${HOME:-$(echo ~)}
image_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
IMAGE_WORK=${IMAGE_WORK:-${XDG_CACHE_HOME:-$HOME/.cache}/ensign/image}

# The names of the stand-ins: those that the Dockerfile's arguments have by default, without a digest.
go_image=golang:1.26
python_image=python:3.13-slim

image_say() { printf 'image: %s\n' "$*" >&2; }

image_check() {
  local missing=() program
  for program in buildah mmdebstrap; do
    command -v "$program" >/dev/null || missing+=("$program")
  done
  if ((EUID)); then
    image_say "this machine cannot build the image: the stand-ins of its bases are made as root. Run it as root, or use docker: make docker-build"
    return 77
  fi
  if ((${#missing[@]})); then
    image_say "this machine lacks ${missing[*]}. On Debian: apt-get install --no-install-recommends ${missing[*]}"
    return 77
  fi
}

# bb calls buildah with a store, a registries.conf and a policy of its own, so that what
# is configured on the machine plays no part.
bb() {
  local sub=$1
  shift
  [[ $sub != commit && $sub != push && $sub != build ]] || set -- --signature-policy "$IMAGE_WORK/policy.json" "$@"
  [[ $sub != run && $sub != build ]] || set -- --isolation chroot "$@"
  CONTAINERS_REGISTRIES_CONF=$IMAGE_WORK/registries.conf \
    buildah --root "$IMAGE_WORK/root" --runroot "$IMAGE_WORK/run" --storage-driver overlay "$sub" "$@"
}

# image_debian FILE SUITE PACKAGES makes a small Debian from the mirror that apt uses.
image_debian() {
  [[ ! -s $1 ]] || return 0
  image_say "making ${1##*/}, a Debian $2; about half a minute, once"
  mmdebstrap --quiet --format=tar --variant=minbase --include="$3" "$2" "$1.part"
  mv "$1.part" "$1"
}

# image_base NAME TAR [PREPARE] makes an image of a tar. PREPARE is a function that gets the
# container's name and the path of its file system.
image_base() {
  local container
  ! bb inspect --type image "$1" >/dev/null 2>&1 || return 0
  image_say "making a stand-in for $1"
  container=$(bb from scratch)
  bb add --quiet "$container" "$2" / >/dev/null
  [[ -z ${3:-} ]] || "$3" "$container" "$(bb mount "$container")"
  bb umount "$container" >/dev/null 2>&1 || true
  bb config --env PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --cmd bash "$container"
  bb commit --quiet --rm "$container" "$1" >/dev/null
}

# The Go of this machine.
image_prepare_go() { cp -R "$(go env GOROOT)" "$2/usr/local/go"; }

# Debian's Python, where the published image has its own: python3 and pip in /usr/local/bin,
# and nothing that keeps pip from installing.
image_prepare_python() {
  rm -f "$2"/usr/lib/python3*/EXTERNALLY-MANAGED
  ln -s ../../bin/python3 "$2/usr/local/bin/python3"
  # shellcheck disable=SC2016 # The shell in the container expands it.
  bb run "$1" -- sh -c 'wheel=$(echo /usr/share/python-wheels/pip-*.whl) &&
    PYTHONPATH=$wheel /usr/local/bin/python3 -m pip install --quiet --no-index --root-user-action=ignore "$wheel"'
}

# image_alone keeps others out of $IMAGE_WORK until this script ends: they would give the names that
# it builds from to images of another tree.
image_alone() {
  mkdir -p "$IMAGE_WORK"
  exec {image_lock}>"$IMAGE_WORK/lock"
  flock --nonblock "$image_lock" && return
  image_say "somebody else builds in $IMAGE_WORK; waiting for that to end"
  flock "$image_lock"
}

# image_room removes the images that no name leads to, once the store has grown to 10 GB: a build of
# another commit adds up to 1 GB.
image_room() {
  local size
  size=$(du -s --one-file-system --block-size=1G "$IMAGE_WORK/root" 2>/dev/null | cut -f1) || true
  ((${size:-0} >= 10)) || return 0
  image_say "removing images of earlier builds from $IMAGE_WORK"
  bb rmi --prune >/dev/null
}

image_stand_ins() {
  [[ -n ${image_lock:-} ]] || image_alone
  printf 'unqualified-search-registries = ["localhost"]\nshort-name-mode = "permissive"\n' >"$IMAGE_WORK/registries.conf"
  printf '{"default": [{"type": "insecureAcceptAnything"}]}\n' >"$IMAGE_WORK/policy.json"
  image_room
  image_debian "$IMAGE_WORK/debian-bookworm.tar" bookworm ca-certificates
  image_debian "$IMAGE_WORK/python-trixie.tar" trixie ca-certificates,python3,python3-venv,netbase,tzdata
  image_base "$go_image" "$IMAGE_WORK/debian-bookworm.tar" image_prepare_go
  image_base "$python_image" "$IMAGE_WORK/python-trixie.tar" image_prepare_python
}

# image_bud NAME CONTEXT [ARGUMENT…] builds a Dockerfile. The machine's certificates are there
# during the build, because its way to the package registries may need one of its own.
# A build that fails leaves no container either.
image_bud() {
  local name=$1 context=$2 log=$IMAGE_WORK/build.log
  shift 2
  bb build --layers --force-rm --pull=false --network host --format docker \
    --volume /etc/ssl/certs:/etc/ssl/certs:ro "$@" --tag "$name" "$context" 2>&1 | image_follow "$name" "$log" && return
  image_say "building $name failed; all that it said is in $log, which ends with"
  tail -n 20 "$log" >&2
  return 1
}

# image_follow NAME LOG keeps what a build says in the log, and says every 20 seconds (EVERY) which
# step it is at.
image_follow() {
  local name=$1 log=$2 line step='the first step' began=$SECONDS told=$SECONDS status
  : >"$log"
  while true; do
    status=0
    IFS= read -r -t 1 line || status=$?
    if ((status > 128)); then # No whole line within a second.
      printf '%s' "$line" >>"$log"
    elif ((status)); then
      return
    else
      printf '%s\n' "$line" >>"$log"
      [[ $line != STEP\ * && $line != \[*\]\ STEP\ * ]] || step=${line:0:100}
    fi
    ((SECONDS - told < ${EVERY:-20})) || {
      image_say "$name after $((SECONDS - began)) s: $step"
      told=$SECONDS
    }
  done
}

image_build() {
  local began=$SECONDS
  # Debian's buildah does not tell the Dockerfile the architecture, as others do.
  image_bud "$2" "$image_root" ${1:+--target "$1"} --build-arg TARGETARCH="$(go env GOARCH)" \
    --build-arg GO_IMAGE="$go_image" --build-arg PYTHON_IMAGE="$python_image" --build-arg VERSION="${VERSION:-$(git -C "$image_root" describe --tags --always 2>/dev/null || echo dev)}" \
    --build-arg COMMIT="${COMMIT:-$(git -C "$image_root" rev-parse HEAD 2>/dev/null || echo unknown)}"
  image_say "built $2 in $((SECONDS - began)) s"
}
