#!/usr/bin/env bash
# Puts MariaDB's server and clients into .dev/mariadb/bin, for tests: mariadbd, mariadb
# and mariadb-dump. No root is needed, and nothing is installed on the machine.
#
# Programs that are on PATH, or in /usr/sbin, are taken (the folder then has links to
# them). Otherwise Debian's packages, and the libraries that they need and the machine
# lacks, are downloaded by apt-get and unpacked below .dev/mariadb.
#
# No version is pinned: Debian's archive keeps one of each release, the one with the
# latest fixes. What was taken is printed, and stands in .dev/mariadb/version.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
programs=(mariadbd mariadb mariadb-dump)
# mariadb-client is there for mariadb-dump alone; of the others the dependencies are taken too.
packages=(mariadb-server-core mariadb-client-core)
alone=mariadb-client

say() { printf 'mariadb: %s\n' "$*" >&2; }

die() {
  say "$@"
  exit 1
}

# taken prints the programs that the machine has, a line each; it fails where one is missing.
taken() { for program in "${programs[@]}"; do PATH=$PATH:/usr/sbin command -v "$program" || return; done; }

# apt runs apt-get with package lists of the machine, or, once update has made them, with
# our own: a machine may have none, or such that name versions which are gone.
apt=(apt-get --quiet=2 -o Debug::NoLocking=1 -o APT::Sandbox::User="$(id -un)")

update() {
  say "fetching Debian's package lists, about 10 s"
  mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
  apt+=(-o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache")
  "${apt[@]}" update
}

# download gets the packages into the working directory.
download() {
  local plan
  plan=$("${apt[@]}" --simulate --no-install-recommends install "${packages[@]}") || return
  # Lines as "Inst libaio1 (0.3.113-4 …)"; a package that is there in an older version has "[…]" before.
  # shellcheck disable=SC2046 # Names of packages are words.
  (cd "$work" && "${apt[@]}" download $( (awk '$1 == "Inst" {print $2}' <<<"$plan" && printf '%s\n' "${packages[@]}" "$alone") | sort -u))
}

# unpack makes the directory $1 of the packages.
unpack() {
  local package program
  for package in "$work"/*.deb; do dpkg-deb --extract "$package" "$1"; done
  rm -rf "$1/etc" "$1/usr/share/doc" "$1/usr/share/man" "$1/usr/share/lintian"
  find "$1"/usr/*bin ! -type d ! -name mariadbd ! -name mariadb ! -name mariadb-dump -delete
  mkdir "$1/bin"
  for program in "${programs[@]}"; do
    cat >"$1/bin/$program" <<'WRAPPER'
#!/bin/sh
# Runs the program of this name with the libraries that were unpacked with it.
root=$(cd "$(dirname "$0")/.." && pwd -P)
LD_LIBRARY_PATH=$(echo "$root"/usr/lib/*-linux-gnu | tr ' ' ':')${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
for directory in "$root/usr/sbin" "$root/usr/bin"; do
  [ ! -x "$directory/${0##*/}" ] || exec "$directory/${0##*/}" "$@"
done
WRAPPER
    chmod 755 "$1/bin/$program"
  done
}

build() {
  local found new=$root/.dev/mariadb.new out=$root/.dev/mariadb
  rm -rf "$new" "$work"
  mkdir -p "$new" "$work"
  if found=$(taken); then
    mkdir "$new/bin"
    # shellcheck disable=SC2086 # A path for each program, without spaces where Debian and its like have them.
    ln -s $found "$new/bin/"
  else
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
      die "there is no ${programs[*]} on PATH, and no apt-get to get them by; install MariaDB's server and client, 10.11 or later"
    say "downloading Debian's packages into $out"
    download || { rm -f "$work"/*.deb && update && download; } ||
      die "apt-get could not download ${packages[*]}; what it said stands above. 'apt-get update' as root may help, or MariaDB's programs on PATH"
    unpack "$new"
  fi
  "$new/bin/mariadbd" --no-defaults --version | sed 's/^.* Ver //' >"$new/version" || die "mariadbd, just put into $new, does not run"
  rm -rf "$work" "$out"
  mv "$new" "$out"
  say "ready: $(<"$out/version")"
}

work=$root/.dev/mariadb.work
complete() { for program in "${programs[@]}"; do [[ -x $root/.dev/mariadb/bin/$program ]] || return; done; }

complete && exit 0
mkdir -p "$root/.dev"
# Two calls at once must not build the same directory.
if command -v flock >/dev/null; then
  exec 9>"$root/.dev/.mariadb.lock"
  flock 9
fi
complete || build
