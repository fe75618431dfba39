#!/usr/bin/env bash
# Makes a dump of databases, or restores one: beside the manager, or in a Job's container.
#
#   dumps.sh dump    PARAMETER=… -- DATABASE…   keep=N
#   dumps.sh restore PARAMETER=… --             dump=NAME once=ID (restores once for an ID)
#
# Parameters of both: root (a directory that exists), path (below it, where the dumps are),
# flavor (mysql or mariadb), host, port, user, and ca (a file) where TLS is required.
# A dump also has share (a directory below root, "." for root itself) and quota: how many bytes
# all that is in it may have, with what is being written; and remedy, which a refusal ends with.
# The password is $PASSWORD, or else the standard input; no process has it among its arguments.
# The result, one line of JSON, goes to the file $RESULT, or else to the standard output.
set -euo pipefail
shopt -s nullglob
umask 077

die() {
  printf '%s\n' "$*" >&2
  exit 1
}

# programs finds those that fit the server, and the options that only one of them has.
programs() {
  local tool vendor place='in the image of the Job: name one that has it by mysqlbackup_image in watches.yaml'
  [[ -n ${RESULT:-} ]] || place="beside the manager: add it to the operator's image, or use spec.storage.persistentVolumeClaim"
  options=(--single-transaction --routines --triggers --events --hex-blob --no-tablespaces --add-drop-database)
  case $flavor in
  mariadb) maker=mariadb-dump client=mariadb vendor=MariaDB ;;
  *) maker=mysqldump client=mysql vendor=MySQL && options+=(--set-gtid-purged=OFF) ;;
  esac
  for tool in "$maker" "$client"; do
    [[ -n $(command -v "$tool") ]] || die "$tool, a program of $vendor's client, is not installed $place"
  done
  if [[ $vendor == MySQL && $("$maker" --version) == *MariaDB* ]]; then
    die "$maker is MariaDB's, and the server is MySQL: MySQL's own is not installed $place"
  fi
}

option() {
  local value=${2//\\/\\\\}
  value=${value//\"/\\\"}
  printf '%s="%s"\n' "$1" "${value//$'\n'/\\n}"
}

# login prints an option file. The programs read it from a pipe, so there is none to be left over.
login() {
  printf '[client]\nprotocol=tcp\ndefault-character-set=utf8mb4\n'
  option host "$host"
  option port "$port"
  option user "$user"
  option password "$password"
  [[ -z ${ca:-} ]] || option ssl-ca "$ca"
  if [[ $flavor == mariadb ]]; then
    option ssl-verify-server-cert "$([[ -z ${ca:-} ]] && echo 0 || echo 1)"
  elif [[ -n ${ca:-} ]]; then
    option ssl-mode VERIFY_IDENTITY
  fi
}

# complete reports whether a dump has the program's closing line.
complete() { [[ $(tail -n 1 "$1") == '-- Dump completed'* ]]; }

# used prints how many bytes all that is in the share has.
used() { { du --summarize --bytes -- "$root/$share" 2>/dev/null || true; } | cut -f 1; }

# limited appends the standard input to the file $1, piece by piece as others may write too, and
# returns 3 once the share has more than its quota.
limited() {
  local before=-1 size=0
  while ((size > before)); do
    before=$size
    head -c 4194304 >>"$1" || return 1
    size=$(stat -c %s "$1")
    (($(used) <= quota)) || return 3
  done
}

# retain removes the oldest dumps until $keep are left, but none of the name $1.
retain() {
  local all=("$directory"/????????T??????Z.sql) old i
  for ((i = 0; i < ${#all[@]} - keep; i++)); do
    old=${all[i]}
    [[ $old == */"$1.sql" ]] || rm -f "$old" "$old".restor*
  done
}

result() { printf "$1\n" "${@:2}" >"${RESULT:-/dev/stdout}"; }

dump() {
  local name part said status=0 all
  mkdir -p "$directory"
  rm -f "$directory"/*.part # Of a run that was killed.
  retain ''                 # Where keep was lowered, these may be what there is no room for.
  # Names are times; a second has one dump.
  while name=$(date -u +%Y%m%dT%H%M%SZ) && [[ -e $directory/$name.sql ]]; do sleep 0.2; done
  part=$directory/$name.sql.part
  trap 'rm -f "$directory"/*.part' EXIT
  said=$({ "$maker" --defaults-file=<(login) "${options[@]}" --databases -- "$@" | limited "$part"; } 2>&1) || status=$?
  if ((status == 3)); then
    rm -f "$part"
    die "the dump does not fit: $quota bytes are allowed, and $(used) are taken by dumps that are kept. $remedy"
  elif ((status)); then
    [[ $said != *'No space left'* ]] || said="no space left in $directory: $said"
    die "$said"
  fi
  complete "$part" || die "$maker ended well, but its dump has no closing line"
  sync "$part"
  mv "$part" "$directory/$name.sql"
  # A clock that was set back must not cost the dump of this run.
  retain "$name"
  sync "$directory"
  all=("$directory"/????????T??????Z.sql)
  result '{"name": "%s", "bytes": %d, "kept": %d}' "$name" "$(stat -c %s "$directory/$name.sql")" "${#all[@]}"
}

# restore leaves a mark beside the dump, so that the same restore never happens again.
restore() {
  local file=$directory/$dump.sql
  [[ -f $file ]] || die "dump $dump does not exist (it would be $file); nothing was changed"
  if [[ ! -e $file.restored-$once ]]; then
    complete "$file" || die "dump $dump is not complete; nothing was changed"
    : >"$file.restoring-$once" # Before anything is changed: it fails where nothing can be written.
    # Whoever writes to the server, or answers in its place, decides what is in a dump. In this mode the
    # client's own commands ("system", "source") are unknown, and it sends no file of this machine.
    "$client" --defaults-file=<(login) --local-infile=0 --binary-mode <"$file"
    touch "$file.restoring-$once"
    mv "$file.restoring-$once" "$file.restored-$once"
  fi
  result '{"dump": "%s", "time": "%s"}' "$dump" "$(date -u -r "$file.restored-$once" +%Y-%m-%dT%H:%M:%SZ)"
}

action=$1
shift
while [[ $1 != -- ]]; do
  declare "$1"
  shift
done
shift
password=${PASSWORD-$(cat)}
unset PASSWORD
directory=$root/$path
[[ -d $root ]] || die "directory $root, where dumps are kept, does not exist"
programs
"$action" "$@"
