# Sourced by the scripts of this folder: says what is being done and how long it
# took.

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
