#!/usr/bin/env bash
# go build, which says how far it is when it takes long.
#
#   hack/compile/compile.sh LABEL ARGUMENT…    runs `go build ARGUMENT…` in this directory
#
# A build of a few seconds prints nothing. A longer one prints what it downloads and how many
# packages of how many are compiled: a line that changes at a terminal, a line every 20 seconds
# elsewhere (EVERY=seconds).
set -euo pipefail

label=${1:?usage: compile.sh LABEL ARGUMENT…}
shift
every=${EVERY:-20}
# Shorter builds need no progress, and are not slowed down by counting.
quiet=$((every < 3 ? 0 : 3))

# stale prints the packages that are still to be compiled, one a line.
stale() {
  local arguments=()
  while (($#)); do
    if [[ $1 == -o ]]; then shift; else arguments+=("$1"); fi
    shift
  done
  go list -deps -f '{{if .Stale}}{{.ImportPath}}{{end}}' "${arguments[@]}" 2>/dev/null || true # go build says what is wrong.
}

# duration prints seconds for people.
duration() { if (($1 < 120)); then printf '%d s' "$1"; else printf '%d min' $((($1 + 30) / 60)); fi; }

# position prints how far the build is.
position() {
  local spent=$((SECONDS - first))
  if ((!compiled)); then
    if ((downloaded)); then
      printf '%d modules downloaded' "$downloaded"
    elif ((counted && !${#known[@]})); then
      printf 'no package is to be compiled, linking'
    else
      printf '%d packages to compile' "${#known[@]}"
    fi
  elif ((compiled < ${#known[@]})); then
    printf '%d of %d packages compiled' "$compiled" "${#known[@]}"
  else
    printf '%d packages compiled, linking' "$compiled"
  fi
  printf ' after %s' "$(duration "$SECONDS")"
  if ((compiled && compiled < ${#known[@]} && spent >= 10 && 20 * compiled >= ${#known[@]})); then
    printf ', about %s left' "$(duration $((spent * (${#known[@]} - compiled) / compiled)))"
  fi
}

# tell shows the position where that is due.
tell() {
  if [[ -t 2 ]]; then
    ((SECONDS == told)) || printf '\r\033[K%s: %s' "$label" "$(position)" >&2
    told=$SECONDS
  elif ((SECONDS - told >= every)); then
    printf '%s: %s\n' "$label" "$(position)" >&2
    told=$SECONDS
  fi
}

# count adds the packages that are still to be compiled to those that are known.
count() {
  local name
  counted=1
  while read -r name; do known[$name]=1; done < <(stale "${arguments[@]}")
}

# take reads a line of `go build -v`. What is no progress is a fault, and shown as it is.
take() {
  case $1 in
  'go: downloading '*) downloaded=$((downloaded + 1)) ;;
  *[' :#']* | '')
    [[ ! -t 2 ]] || printf '\r\033[K' >&2
    printf '%s\n' "$1" >&2
    ;;
  *)
    compiled=$((compiled + 1)) known[$1]=1
    ((compiled > 1)) || first=$SECONDS
    # Not before: until the first package is compiled, modules may be missing.
    ((counted || SECONDS < quiet)) || count
    ;;
  esac
}

follow() {
  local -A known=()
  local line part='' status downloaded=0 compiled=0 counted=0 first=0 told=0 arguments=("$@")
  while true; do
    status=0
    IFS= read -r -t 1 line || status=$?
    if ((status > 128)); then # No whole line within a second.
      part+=$line
    elif ((status == 0)); then
      take "$part$line"
      part=
    else
      break
    fi
    # Nothing to download and nothing compiled for so long: all packages may be there.
    ((counted || compiled || downloaded || SECONDS < every)) || count
    ((SECONDS < quiet)) || tell
  done
  [[ ! -t 2 ]] || printf '\r\033[K' >&2
}

# In braces: bash reads on in a file while it runs it, and this one may change meanwhile.
{
  SECONDS=0
  go build -v "$@" 2>&1 | follow "$@"
  exit
}
