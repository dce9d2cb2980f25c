# The box itself: privileges, systemd, units, folders, disks, snapshot, engine, listeners.
# The caller sets UNITS, FOLDERS, DISKS, SNAPSHOT, CACHES, ENVIRONMENT, TOOLS, ACCOUNT, PACKAGES, HOST,
# PORT; an empty value skips the section. NEIGHBOURS is not empty where the other snapshots matter even
# though this one is there. PROPERTIES are what systemctl is asked for. UNIT_FILES, READY, MEASURED, OWN,
# MANIFEST, USERS, FETCHING, INCOMING are the names of inventory/common/paths.py.

who() { id -u; id -un; }

manager() {
  [ -d /run/systemd/system ] || { echo "/run/systemd/system does not exist"; return 3; }
  systemctl --version | head -n 1; systemctl is-system-running; :
}

# One block a unit, blank line between; times in microseconds, UTC.
units() { systemctl show --timestamp=us+utc -p "$PROPERTIES" -- $UNITS; }

unit_file() {
  f=$UNIT_FILES/$1
  [ -e "$f" ] || [ -L "$f" ] || return 3
  stat -c '%F|%a|%U|%G|%.6Y' -- "$f" && sha256sum <"$f" && cat -- "$f"
}

noted() { for u in $UNITS; do [ -r "$1/$u" ] && printf '%s %s\n' "$u" "$(cat "$1/$u")"; done; :; }

folders() { for f in $FOLDERS; do stat -c '%n|%F|%a|%U|%G' -- "$f" 2>/dev/null || echo "$f|absent"; done; :; }

# The file system that will hold a path is that of its nearest existing parent.
disks() {
  for f in $DISKS; do
    d=$f; while [ ! -e "$d" ]; do d=${d%/*}; [ -n "$d" ] || d=/; done
    w=ro; [ -w "$d" ] && w=rw
    printf '%s|%s|%s|' "$f" "$d" "$w"
    df -B1 --output=avail,size,iavail,fstype,target -- "$d" | tail -n 1
  done; :
}

account() { getent passwd "$ACCOUNT"; }

packages() { dpkg-query -W -f '${Package} ${db:Status-Status}\n' $PACKAGES 2>/dev/null; :; }

manifest() { [ -e "$SNAPSHOT" ] || return 3; cat -- "$SNAPSHOT/$MANIFEST"; }
files() { [ -d "$SNAPSHOT" ] || return 3; find "$SNAPSHOT/" -path "$SNAPSHOT/$OWN" -prune -o ! -type d -printf '%y|%s|%T@|%U|%i|%P\n'; }
# Builtins only: this is part of every run.
users() {
  read -r h </proc/sys/kernel/hostname; printf '%s\n' "$h"
  for u in "$SNAPSHOT/$USERS"/*; do [ ! -e "$u" ] || printf '%s\n' "${u##*/}"; done
}

# The other snapshots and the unfinished fetches of the repository: links, blocks of 512 bytes, size.
HOME_OF=${SNAPSHOT%/*}
beside() {
  [ -d "$HOME_OF" ] || return 3
  stat -c 'device|%d' -- "$HOME_OF"
  find "$HOME_OF/" -mindepth 2 -path "$SNAPSHOT" -prune -o -type f -printf 'file|%n|%b|%s|%P\n'
}
proven() { for f in "$HOME_OF"/*/"$MANIFEST"; do [ "$f" = "$SNAPSHOT/$MANIFEST" ] || cat -- "$f" 2>/dev/null; done; :; }
cached() { for c in $CACHES; do [ ! -d "$c/blobs" ] || find "$c/blobs" -maxdepth 1 -type f -printf '%D|%U|%s|%f\n'; done; :; }

# Who uses a snapshot: units by their files, processes of this box, other boxes by their marks.
uses() {
  for s in "$HOME_OF"/*/ "$HOME_OF/$FETCHING"*/ "$HOME_OF/$INCOMING"*/; do
    [ -d "$s" ] && [ "$s" != "$SNAPSHOT/" ] || continue
    s=${s%/}; c=${s##*/}
    # On standard input, because a pattern among the arguments would find itself in /proc.
    printf '%s' "$s" | grep -rlsF -f - "$UNIT_FILES" /run/systemd/system /usr/local/lib/systemd/system | sed "s/^/unit|$c|/"
    { find /proc/[0-9]*/fd -lname "$s/*" 2>/dev/null; printf '%s' "$s" | grep -lsF -f - /proc/[0-9]*/maps /proc/[0-9]*/cmdline; } |
      cut -d / -f 3 | sort -u | sed "s/^/process|$c|/"
    ls -- "$s/$USERS" 2>/dev/null | sed "s/^/box|$c|/"
  done; :
}

environment() {
  [ -d "$ENVIRONMENT" ] || return 3
  cat -- "$ENVIRONMENT/boxwright.json" 2>/dev/null; echo
  for d in "$ENVIRONMENT"/lib/python3*/site-packages/*.dist-info; do [ -d "$d" ] && echo "${d##*/}"; done; :
}

tools() { cat -- "$TOOLS/complete"; }

# Only listeners on the service's own port, with the control group of each process.
listeners() {
  ss -Hltnp "sport = :$PORT" || return
  for p in $(ss -Hltnp "sport = :$PORT" | grep -o 'pid=[0-9]*' | sort -u); do
    sed "s/^/cgroup|${p#pid=}|/" "$P/${p#pid=}/cgroup" 2>/dev/null
  done; :
}

# bash because it speaks TCP: curl is not on every box. A proxy in the environment plays no part.
answer() {
  command -v bash >/dev/null 2>&1 || return 127
  timeout 5 bash -c 'exec 3<>"/dev/tcp/$0/$1" && printf "GET /v1/models HTTP/1.0\r\nHost: %s\r\n\r\n" "$0" >&3 && cat <&3' "$HOST" "$PORT"
}

sec who who
sec manager manager
[ -z "$UNITS" ] || {
  sec units units
  for unit in $UNITS; do sec "unit-file:$unit" unit_file "$unit"; done
  sec ready noted "$READY"
  sec measured noted "$MEASURED"
}
[ -z "$FOLDERS" ] || sec folders folders
[ -z "$DISKS" ] || sec disks disks
[ -z "$ACCOUNT" ] || sec account account
[ -z "$PACKAGES" ] || sec packages packages
[ -z "$SNAPSHOT" ] || {
  sec manifest manifest; sec files files; sec users users
  [ -z "$NEIGHBOURS" ] && [ -e "$SNAPSHOT/$MANIFEST" ] || {
    sec beside beside; sec proven proven; sec cached cached; sec uses uses
  }
}
[ -z "$ENVIRONMENT" ] || sec environment environment
[ -z "$TOOLS" ] || sec tools tools
[ -z "$PORT" ] || { sec listeners listeners; sec answer answer; }
