#!/usr/bin/env bash
# Makes a release: programs, images, install.yaml, the chart, the bundle, SBOMs, checksums and
# their signature. Images, chart and bundle are pushed to REGISTRY, everything else is written into OUT.
#
#   hack/release/release.sh VERSION [STEP…]    VERSION is 1.2.3 or v1.2.3; without STEP all of them
#   hack/release/release.sh --dry-run [VERSION]  with a registry and a key of its own, and the notes of "Unreleased"
#   hack/release/release.sh --help
#
# Steps: notes programs images install chart bundle sbom sums sign check
#
#   REGISTRY=host/path   where images go (dry run: localhost:5000; the registry listens on LISTEN, localhost)
#   OUT=directory        dist/release
#   DOWNLOADS=url        where the files of OUT will be served: index.yaml names the chart there
#   ENGINE=docker        docker's buildx builds the images, for ARCHES; ENGINE=buildah: hack/image/builder.sh, on
#                        stand-ins for the images that the Dockerfile names, for this machine's processor alone
#   ARCHES='amd64 arm64' of the images
#   PLATFORMS='linux/amd64 …' of the programs: linux and darwin, amd64 and arm64
#   ALSO=tag             another tag of the images, 1.2 by default for 1.2.3
#   SIGN=keyless         cosign signs with the identity of the workflow; SIGN=FILE: with this private key of cosign, whose
#                        password is COSIGN_PASSWORD
#   KEEP=1               a dry run's registry stays up until Ctrl-C
#
# It takes Go and git; docker or buildah. helm, crane and cosign are built from the Go module proxy.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
cd "$root"
source hack/steps.sh
source hack/image/builder.sh

module=github.com/ensign-operator/ensign
all=(notes programs images install chart bundle sbom sums sign check)

die() {
  printf 'release: %s\n' "$*" >&2
  exit 1
}

tool() {
  local name=$1
  shift
  "bin/tools/$name" "$@"
}

# made runs the Go program of this folder.
made() { "$work/release" "$@"; }

# reference NAME prints the image of images.txt, by its digest.
reference() { awk -v name="$1" '$1 == name { print $2 }' "$out/images.txt" | grep . || die "images.txt does not have $1: run the step images first"; }

# one NAME ARCH prints the image of one processor, by its digest.
one() {
  local index
  index=$(reference "$1")
  printf '%s@%s' "${index%@*}" "$(tool crane digest --platform "linux/$2" "$index")"
}

# note NAME REFERENCE writes the image into images.txt, in the place of what stood there.
note() {
  touch "$out/images.txt"
  { awk -v name="$1" '$1 != name' "$out/images.txt" && printf '%s %s\n' "$1" "$2"; } | sort >"$work/images.txt"
  mv "$work/images.txt" "$out/images.txt"
}

notes() { made notes CHANGELOG.md "$section" >"$out/notes.md"; }

# programs compiles what people install. The three lie side by side, because ensign looks for the others there.
programs() {
  local platform dir
  local flags="-s -w -X main.version=v$version -X main.commit=$commit -X $module/internal/docslink.version=v$version"
  flags+=" -X $module/internal/author/scaffold.baseImage=$registry/ensign-base:$version -X $module/internal/author/scaffold.moduleVersion=v$version"
  for platform in $platforms; do
    dir=$work/ensign-$version-${platform/\//-}
    mkdir -p "$dir"
    GOFLAGS="${GOFLAGS:--trimpath -buildvcs=false}" CGO_ENABLED=0 GOOS=${platform%/*} GOARCH=${platform#*/} \
      hack/compile/compile.sh "$platform" -ldflags "$flags" -o "$dir/" ./cmd/ensign ./cmd/manager ./cmd/chart-exec
    cp LICENSE "$dir/"
    tar -C "$work" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - "${dir##*/}" | gzip -n >"$out/${dir##*/}.tar.gz"
  done
}

# archive TARGET NAME ARCH FILE builds a target of the Dockerfile into an archive.
archive() {
  if [[ $engine == docker ]]; then
    docker buildx build --platform "linux/$3" --provenance=false --build-arg VERSION="v$version" --build-arg COMMIT="$commit" \
      ${1:+--target "$1"} --output "type=docker,dest=$4,name=$2:$version-$3" .
    return
  fi
  [[ $3 == "$(go env GOHOSTARCH)" ]] || die "ENGINE=buildah builds for this machine's processor alone, not for $3"
  VERSION=v$version COMMIT=$commit image_build "$1" "$2:$version-$3"
  bb push --quiet "$2:$version-$3" "docker-archive:$4:$2:$version-$3"
}

# images builds and pushes both images, each an index of all ARCHES.
images() {
  local name arch list
  if [[ $engine == buildah ]]; then
    image_check
    image_stand_ins
  fi
  for name in ensign-base ensign; do
    list=()
    for arch in $arches; do
      archive "$([[ $name == ensign ]] || printf base)" "$name" "$arch" "$work/image.tar"
      tool crane push "$work/image.tar" "$registry/$name:$version-$arch" >"$work/pushed"
      list+=(-m "$(<"$work/pushed")")
      rm "$work/image.tar"
    done
    tool crane index append --tag "$registry/$name:$version" "${list[@]}" 2>&1
    [[ -z $also ]] || tool crane tag "$registry/$name:$version" "$also"
    note "$name" "$registry/$name@$(tool crane digest "$registry/$name:$version")"
  done
}

install() { go -C hack/bundle run . -image "$(reference ensign)" -out "$out" install; }

# manual DIR lets addresses of the manual lead to the pages of this version.
manual() { find "$1" -type f -exec sed -i "s|$module/blob/main/|$module/blob/v$version/|" {} +; }

# chart packages the chart with the image as its default, so that one command installs it.
chart() {
  local copy=$work/chart/ensign image digest
  image=$(reference ensign)
  rm -rf "$work/chart"
  mkdir -p "$work/chart"
  cp -RL charts/ensign "$copy"
  manual "$copy"
  sed -i -e "s|^  repository: ensign\$|  repository: ${image%@*}|" -e "s|^  digest: \"\"\$|  digest: ${image#*@}|" "$copy/values.yaml"
  tool helm package "$copy" --version "$version" --app-version "$version" --destination "$out" 2>&1
  tool helm push "$out/ensign-$version.tgz" "oci://$registry/charts" $plain >"$work/pushed" 2>&1 || { cat "$work/pushed" && return 1; }
  digest=$(sed -nE 's/^Digest: +//p' "$work/pushed")
  note charts/ensign "$registry/charts/ensign@$digest"
  mkdir -p "$work/pages"
  cp "$out/ensign-$version.tgz" "$work/pages/"
  tool helm repo index "$work/pages" --url "$downloads"
  mv "$work/pages/index.yaml" "$out/index.yaml"
}

# bundle makes the image of the bundle, which has files and labels alone.
bundle() {
  local dir=$work/bundle labels=() label
  make bundle IMG="$(reference ensign)" BUNDLE_VERSION="$version" DIST="$work" OUT=bin/manager
  tar -C "$dir" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - manifests metadata | gzip -n >"$out/ensign-bundle-$version.tar.gz"
  tool crane append --new_layer "$out/ensign-bundle-$version.tar.gz" --new_tag "$registry/ensign-bundle:$version" 2>&1
  while read -r _ label; do labels+=(--label "$label"); done < <(grep ^LABEL "$dir/Dockerfile")
  tool crane mutate "${labels[@]}" --set-platform "linux/$(go env GOHOSTARCH)" --tag "$registry/ensign-bundle:$version" "$registry/ensign-bundle:$version" >"$work/pushed"
  note ensign-bundle "$(<"$work/pushed")"
}

# sbom lists what is in each archive of programs, and in the images.
sbom() {
  local file name arch
  for file in "$out"/ensign-"$version"-*.tar.gz; do
    made sbom "$(basename "$file" .tar.gz)" "$version" <(gzip -dc "$file") >"${file%.tar.gz}.cdx.json"
  done
  for name in ensign-base ensign; do
    for arch in $arches; do
      made sbom "$name" "$version" <(tool crane export --platform "linux/$arch" "$(reference "$name")" -) >"$out/image-$name-$arch.cdx.json"
    done
  done
}

sums() { (cd "$out" && rm -f SHA256SUMS* release.pub && sha256sum -- * >SHA256SUMS); }

# sign signs the checksums, which name each file, and each image, to which it attaches its SBOM. A key of one's own needs neither the network nor the log of
# all signatures: what is signed for a try does not belong there.
sign() {
  local with=() image name arch
  hack/tools/build.sh cosign
  if [[ -n $dry ]]; then
    export COSIGN_PASSWORD=
    tool cosign generate-key-pair --output-key-prefix "$work/release" 2>&1
    SIGN=$work/release.key
  fi
  case ${SIGN:-} in
  '') die "SIGN is not set: keyless, or the file of cosign's private key" ;;
  keyless) ;;
  *)
    tool cosign public-key --key "$SIGN" >"$out/release.pub"
    tool cosign signing-config create --out "$work/signing-config.json" # No services.
    tool cosign trusted-root create --out "$work/trusted-root.json"
    with=(--key "$SIGN" --signing-config "$work/signing-config.json" --trusted-root "$work/trusted-root.json")
    ;;
  esac
  tool cosign sign-blob --yes "${with[@]}" --bundle "$out/SHA256SUMS.sigstore.json" "$out/SHA256SUMS" 2>&1
  while read -r _ image; do tool cosign sign --yes --recursive "${with[@]}" "$image" 2>&1; done <"$out/images.txt"
  for name in ensign-base ensign; do
    for arch in $arches; do
      tool cosign attest --yes "${with[@]}" --type cyclonedx --predicate "$out/image-$name-$arch.cdx.json" "$(one "$name" "$arch")" 2>&1
    done
  done
}

# check looks at the release as somebody who fetches it.
check() {
  local name arch image program said by=(--certificate-oidc-issuer https://token.actions.githubusercontent.com --certificate-identity-regexp "^https://github.com/")
  hack/tools/build.sh cosign
  [[ ! -f $out/release.pub ]] || by=(--key "$out/release.pub" --insecure-ignore-tlog)
  (cd "$out" && sha256sum --check --quiet SHA256SUMS)
  ! tar -xzOf "$out/ensign-$version.tgz" | grep -qF "$module/blob/main/" || die "the chart names pages of the branch main"
  [[ -f $out/SHA256SUMS.sigstore.json ]] || die "the checksums are not signed: run the step sign first"
  tool cosign verify-blob "${by[@]}" --bundle "$out/SHA256SUMS.sigstore.json" "$out/SHA256SUMS" 2>&1
  while read -r name image; do
    [[ $(tool crane digest "$image") == "${image#*@}" ]] || die "the registry does not have $name by its digest"
    tool cosign verify "${by[@]}" "$image" >"$work/verified" 2>&1 || { cat "$work/verified" && die "the signature of $name is not right"; }
    printf '%s is there, and signed: %s\n' "$name" "$image"
  done <"$out/images.txt"
  for name in ensign-base ensign; do
    for arch in $arches; do
      tool cosign verify-attestation "${by[@]}" --type cyclonedx "$(one "$name" "$arch")" >"$work/verified" 2>&1 || { cat "$work/verified" && die "the SBOM of $name for $arch is not attached"; }
      printf '%s for %s has its SBOM\n' "$name" "$arch"
    done
  done
  made check "$out" "$version"
  program=ensign-$version-$(go env GOHOSTOS)-$(go env GOHOSTARCH)
  tar -C "$work" -xzf "$out/$program.tar.gz"
  said=$("$work/$program/ensign" version)
  printf '%s says: %s\n' "$program.tar.gz" "$said"
  [[ $said == "ensign v$version (commit $commit)" ]] || die "that is another version than v$version of $commit"
}

# serve starts the registry of a dry run.
serve() {
  local address=${LISTEN:-localhost}:${registry#*:}
  address=${address%%/*}
  mkdir -p "$work/registry"
  # Without a signal of its own: Ctrl-C ends the script, which ends it.
  setsid bin/tools/crane registry serve --address "$address" --disk "$work/registry" >"$work/registry.log" 2>&1 &
  server=$!
  until tool crane catalog "${registry%%/*}" >/dev/null 2>&1; do
    kill -0 "$server" 2>/dev/null || die "the registry at $address ended: $(tail -n 1 "$work/registry.log")"
    sleep 0.2
  done
}

finish() {
  trap '' INT TERM # A second Ctrl-C, or make's own signal, would leave the registry running.
  [[ -z $server ]] || kill "$server" 2>/dev/null || true
  [[ -n ${KEEP_WORK:-} ]] || rm -rf "$work"
}

dry='' server=''
case ${1:-} in
--help | -h) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' hack/release/release.sh && exit ;;
--dry-run)
  dry=1
  shift
  set -- "${1:-0.0.0-dry.run}" "${@:2}"
  ;;
esac
version=${1:-}
version=${version#v}
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || die "VERSION is \"${1:-}\": write 1.2.3 or 1.2.3-rc.1; --help says more"
shift
steps=("${@:-${all[@]}}")
(($#)) || steps=("${all[@]}")
for each in "${steps[@]}"; do [[ " ${all[*]} " == *" $each "* ]] || die "there is no step $each; there are: ${all[*]}"; done

registry=${REGISTRY:-${dry:+localhost:5000}}
[[ -n $registry ]] || die "REGISTRY is not set: where the images go, such as registry.example/team"
plain=''
[[ $registry != localhost:* && $registry != 127.* ]] || plain=--plain-http
section=$version
[[ -z $dry ]] || section=Unreleased
downloads=${DOWNLOADS:-https://${module}/releases/download/v$version}
commit=$(git rev-parse HEAD)
also=${ALSO:-}
[[ -n $also || $version == *-* ]] || also=${version%.*}
engine=${ENGINE:-}
[[ -n $engine ]] || { engine=buildah && docker info >/dev/null 2>&1 && engine=docker; } || true
arches=${ARCHES:-}
[[ -n $arches ]] || { [[ $engine == docker ]] && arches='amd64 arm64' || arches=$(go env GOHOSTARCH); }
platforms=${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}
out=${OUT:-$root/dist/release}
mkdir -p "$out"
out=$(cd "$out" && pwd -P)
work=$(mktemp -d)
trap finish EXIT
trap 'exit 130' INT TERM

go build -o "$work/release" ./hack/release
for each in crane helm; do hack/tools/build.sh "$each"; done
[[ -z $dry ]] || serve
printf 'release %s to %s, by %s for %s, into %s\n' "$version" "$registry" "$engine" "$arches" "$out"
number=0
for each in "${steps[@]}"; do
  number=$((number + 1))
  step "$number/${#steps[@]} $each" "$each"
done
made table "$out"
if [[ -n $dry && ${KEEP:-} == 1 ]]; then
  printf 'the registry %s serves until Ctrl-C\n' "$registry"
  wait "$server"
fi
