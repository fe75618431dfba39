#!/usr/bin/env bash
# The steps of an upgrade, each in a Job's container that has the image of a server.
#
#   upgrade.sh check                    says which server the image has
#   upgrade.sh copy     DIRECTORY COPY  in the old image: copies the data of a server that is stopped
#   upgrade.sh upgrade  DIRECTORY COPY  in the new image: upgrades the copy, and compares it
#   upgrade.sh clean    DIRECTORY       removes every other data directory
#
# The directories are names on the volume, which is at $VOLUME. DIRECTORY, that of the server, is
# only read until clean: a step that is cut off anywhere, and repeated, finds it as it was. The
# container's /var/lib/mysql is DIRECTORY for copy, and COPY for upgrade; both share $WORK.
# No server that starts here has a network or grant tables to its end, so no step needs a password.
# The exit code 3 refuses: the step would end the same way again, and $RESULT says why.
set -euo pipefail
shopt -s nullglob

: "${VOLUME:=/volume}" "${WORK:=/tmp}" "${RESULT:=/dev/termination-log}"
socket=/var/run/mysqld/mysqld.sock log=$WORK/server.log pid=''
trap 'exit 1' TERM

# found prints the first of some programs that the image has: MariaDB has changed its names.
found() { type -P "$@" | head -n 1 || true; }

say() { printf '%s\n' "$*" | tail -c 2000 >"$RESULT"; }

refuse() {
  say "$@"
  [[ -z $pid ]] || kill -KILL "$pid" 2>/dev/null || true
  [[ -z ${copy:-} ]] || rm -rf "${VOLUME:?}/$copy"
  exit 3
}

# version prints the server's version, such as 8.4.3 or 11.8.9-MariaDB-1.
version() {
  local words
  words=$("$server" --version) || refuse "the server of the image does not start: $words"
  sed -nE 's/.*Ver ([0-9][^ ]*).*/\1/p' <<<"$words"
}

# serve starts the server for the socket alone, and waits until it answers. Nothing but this script
# writes then: no client, no event, no replication.
serve() {
  "$server" --datadir=/var/lib/mysql --skip-networking --socket="$socket" --event-scheduler=OFF \
    --loose-skip-replica-start --loose-skip-slave-start --innodb-fast-shutdown=0 "$@" >"$log" 2>&1 &
  pid=$!
  until "$admin" --no-defaults --socket="$socket" --user=root ping >/dev/null 2>&1; do
    kill -0 "$pid" 2>/dev/null || ended
    sleep 0.5
  done
}

# ended tells a server that refuses to serve from one that somebody has killed.
ended() {
  local status=0
  wait "$pid" || status=$?
  pid=''
  cat "$log"
  if ((status > 128)); then
    say "the server was killed by signal $((status - 128))"
    exit 1
  fi
  refuse "the server does not start: $(errors)"
}

errors() { grep -F '[ERROR]' "$log" | tail -n 4 || tail -n 4 "$log"; }

# stop ends the server when it has written all that it has.
stop() {
  local status=0
  kill -TERM "$pid"
  wait "$pid" || status=$?
  pid=''
  if ((status)); then
    cat "$log"
    say "the server did not stop well, status $status: $(errors)"
    exit 1
  fi
}

sql() {
  "$client" --no-defaults --socket="$socket" --user=root --default-character-set=utf8mb4 --binary-mode \
    --batch --skip-column-names "$@"
}

# digest prints a line for each table, with its checksum, and for each other thing that users make. Of a
# table that keeps its history the rows are counted: MariaDB 11.5 writes another end of time into them.
digest() {
  local own="NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')"
  sql --raw >$WORK/checks <<SQL
SELECT IF(kind = 'SYSTEM VERSIONED', CONCAT('SELECT ', QUOTE(name), ', COUNT(*) FROM ', quoted, ' FOR SYSTEM_TIME ALL;'), CONCAT('CHECKSUM TABLE ', quoted, ';'))
FROM (SELECT table_type AS kind, CONCAT(table_schema, '.', table_name) AS name,
        CONCAT('\`', REPLACE(table_schema, '\`', '\`\`'), '\`.\`', REPLACE(table_name, '\`', '\`\`'), '\`') AS quoted
      FROM information_schema.tables
      WHERE table_type NOT LIKE '%VIEW' AND table_type NOT LIKE 'TEMPORARY%' AND table_schema $own) AS found;
SQL
  {
    sql <$WORK/checks | sed 's/^/table\t/'
    sql <<SQL
SELECT 'view', table_schema, table_name FROM information_schema.views WHERE table_schema $own;
SELECT 'routine', routine_schema, routine_name FROM information_schema.routines WHERE routine_schema $own;
SELECT 'trigger', trigger_schema, trigger_name FROM information_schema.triggers WHERE trigger_schema $own;
SELECT 'event', event_schema, event_name FROM information_schema.events WHERE event_schema $own;
SELECT 'database', schema_name FROM information_schema.schemata WHERE schema_name $own;
SELECT 'account', user, host FROM mysql.user WHERE user NOT IN ('mysql.sys', 'mysql.session', 'mysql.infoschema', 'mariadb.sys', 'PUBLIC');
SQL
  } | LC_ALL=C sort
}

check() { version; }

copy() {
  local taken free
  rm -rf "${VOLUME:?}/$copy" # Of a step that was cut off.
  taken=$(du --summarize --block-size=1M "$VOLUME/$directory" | cut -f 1)
  free=$(df --output=avail --block-size=1M "$VOLUME" | tail -n 1)
  ((free > taken + taken / 10)) ||
    refuse "the upgrade needs room for a copy of the data, $((taken + taken / 10)) MiB, and the volume has $((free)) MiB: raise spec.size"
  serve --skip-grant-tables
  [[ -z $(sql <<<'XA RECOVER') ]] ||
    refuse "there are prepared XA transactions, which no other version may find: commit them or roll them back (XA RECOVER shows them)"
  digest >$WORK/before
  version >$WORK/version
  stop
  cp --archive --reflink=auto "$VOLUME/$directory" "$VOLUME/$copy"
}

upgrade() {
  local old new differences
  old=$(<$WORK/version) new=$(version)
  [[ $(printf '%s\n' "$old" "$new" | sort --version-sort | head -n 1) == "$old" ]] ||
    refuse "the image has the server $new, which is older than $old, whose data these are"
  if [[ $new == *MariaDB* ]]; then
    serve --skip-grant-tables
    "$(found mariadb-upgrade mysql_upgrade)" --no-defaults --socket="$socket" --user=root >"$log.upgrade" 2>&1 ||
      refuse "the upgrade of the data failed: $(tail -n 4 "$log.upgrade")"
  else
    serve # MySQL upgrades what it finds before it answers.
  fi
  stop
  serve --skip-grant-tables
  digest >$WORK/after
  stop
  differences=$(LC_ALL=C comm -3 $WORK/before $WORK/after | head -n 6)
  [[ -z $differences ]] || refuse "the data differ after the upgrade (before, or indented after): $differences"
  sync --file-system "$VOLUME"
  say "upgraded from $old to $new: $(grep -c ^table $WORK/after || true) tables, $(grep -vc ^table $WORK/after || true) other objects are as before"
}

clean() {
  local other
  for other in "$VOLUME"/mysql "$VOLUME"/mysql-[0-9]*; do
    [[ $other == "$VOLUME/$directory" ]] || rm -rf "$other"
  done
}

action=$1 directory=${2:-} copy=${3:-}
server=$(found mysqld mariadbd) client=$(found mysql mariadb) admin=$(found mysqladmin mariadb-admin)
[[ -n $server && -n $client && -n $admin ]] || refuse "the image has no server of MySQL or MariaDB with its client"
"$action"
