# Sourced by the scripts of this folder: says what is being done and how long it
# took.

# Go and pip keep their caches there. If it is not set, a shell knows it from the account.
export HOME=${HOME:-$(echo ~)}

# step TITLE COMMAND… runs the command, in a subshell, between two lines. A
# failure ends the script, after a line that names the step.
step() {
  local title=$1 began=$SECONDS status=0
  shift
  printf '==> %s\n' "$title"
  set +e # Not "if": a condition would switch errexit off inside the command too.
  (
    set -e
    "$@"
  )
  status=$?
  set -e
  if ((status)); then
    printf '==> FAILED after %d s: %s\n' $((SECONDS - began)) "$title" >&2
    exit "$status"
  fi
  printf '==> done in %d s: %s\n\n' $((SECONDS - began)) "$title"
}

# ticking LABEL COMMAND… runs a command that prints nothing for long, and prints every 20 seconds
# (EVERY=seconds) that it still runs.
ticking() {
  local label=$1 began=$SECONDS ticker silent status=0
  shift
  exec {silent}<> <(:) # Nothing is ever written there: to read from it is to wait, without a process.
  (
    while ! read -r -t "${EVERY:-20}" -u "$silent" && kill -0 "$$" 2>/dev/null; do
      printf '%s: still at it after %d s\n' "$label" $((SECONDS - began)) >&2
    done
  ) &
  ticker=$!
  "$@" || status=$?
  kill "$ticker"
  wait "$ticker" 2>/dev/null || true
  exec {silent}>&-
  return "$status"
}
