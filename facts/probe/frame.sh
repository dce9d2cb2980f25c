# The frame of every read. The caller sets NONCE; SYSFS and PROCFS may point at another tree.
LC_ALL=C; export LC_ALL
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; export PATH
S=${SYSFS:-/sys}; P=${PROCFS:-/proc}; export S P
T=; command -v timeout >/dev/null 2>&1 && T="timeout -k 5 ${PROBE_TIMEOUT:-60}"
# A strict UTF-8 reader must not die on a process name.
clean() { tr -cd '\11\12\33\40-\176'; }
# sec NAME COMMAND…: the command's output, then its name and exit status. Never fails.
sec() { n=$1; shift; { "$@" 2>&1; r=$?; echo; echo "@@$NONCE $n $r"; } </dev/null | clean; }
