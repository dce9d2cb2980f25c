# The hardware part of the probe: NUMA, PCI, drivers, GPUs, their links and processes.
#
# Comes after the frame, which gives `sec NAME COMMAND...`, $S (sysfs), $P (procfs) and
# $T (a time limit for outside commands, or nothing). Reads only. Where it can, the shell reads
# sysfs itself: a fork costs more than a file. Functions in ( ) keep their variables.

PATH=$PATH:/usr/lib/wsl/lib:/run/nvidia/driver/usr/bin:/run/current-system/sw/bin:/opt/rocm/bin
hw_nl='
'

# Nodes, their CPUs, distances, memory and sockets, as "path:line". Not with the shell's own
# `read`: dash asks for one byte at a time, and the kernel answers that with an empty cpulist.
hw_numa() (
  n=$S/devices/system/node
  set -- "$n/online" "$n/has_cpu" "$n/has_memory" "$S/devices/system/cpu/online"
  for d in "$n"/node[0-9]*; do
    set -- "$@" "$d/cpulist" "$d/distance"
    for c in "$d"/cpu[0-9]*/topology/physical_package_id; do
      set -- "$@" "$c"
      break
    done
  done
  grep -H '' "$@" 2>/dev/null
  grep -H -E 'Mem(Total|Free):' "$n"/node[0-9]*/meminfo 2>/dev/null
  return 0
)

# Whether strict binding works, node by node. Status 127: no numactl. Silent on one node.
hw_bind() (
  command -v numactl >/dev/null 2>&1 || return 127
  set -- $(grep -l . "$S"/devices/system/node/node[0-9]*/cpulist 2>/dev/null)
  [ $# -gt 1 ] || return 0
  for d; do
    d=${d%/cpulist}
    d=${d##*/node}
    numactl --cpunodebind="$d" --membind="$d" true >/dev/null 2>&1
    printf '%s\t%s\n' "$d" $?
  done
  return 0
)

hw_host() (
  grep -E '^(MemTotal|MemAvailable|HugePages_Total|HugePages_Free|Hugepagesize):' "$P/meminfo"
  if command -v systemd-detect-virt >/dev/null 2>&1; then
    printf 'virt\t%s\n' "$(systemd-detect-virt --vm 2>/dev/null)"
  fi
  if [ -d "$S/kernel/iommu_groups" ]; then
    set -- "$S"/kernel/iommu_groups/*
    [ -e "$1" ] || shift
    printf 'iommu_groups\t%s\n' $#
  fi
  return 0
)

# Accelerators as the kernel sees them, also when no driver works. Virtual functions of a card
# are left out: they are not cards.
hw_pci() (
  for d in "$S"/bus/pci/devices/*; do
    v= c=
    [ -r "$d/vendor" ] && read -r v <"$d/vendor"
    case $v in 0x10de | 0x1002 | 0x1da3) ;; *) continue ;; esac
    [ -r "$d/class" ] && read -r c <"$d/class"
    case $c in 0x0300* | 0x0302* | 0x0380* | 0x1200* | 0x0b40*) ;; *) continue ;; esac
    [ -e "$d/physfn" ] && continue
    printf 'dev\t%s\tvendor=%s\tclass=%s' "${d##*/}" "$v" "$c"
    for k in device numa_node current_link_width max_link_width mem_info_vram_total; do
      [ -r "$d/$k" ] || continue
      v=
      read -r v <"$d/$k" 2>/dev/null
      printf '\t%s=%s' "$k" "$v"
    done
    v=none
    [ -e "$d/iommu_group" ] && v=
    [ -r "$d/iommu_group/type" ] && read -r v <"$d/iommu_group/type"
    printf '\tiommu=%s' "$v"
    v=
    cd -P "$d/driver" 2>/dev/null && v=${PWD##*/}
    printf '\tdriver=%s' "$v"
    cd -P "$d" 2>/dev/null && printf '\tpath=%s' "$PWD"
    echo
  done
  return 0
)

# What the kernel module itself tells: needs no NVML, so it answers on a version mismatch too.
hw_nvproc() (
  [ -d "$P/driver/nvidia" ] || return 0
  [ -r "$P/driver/nvidia/version" ] && while IFS= read -r l; do printf '%s\n' "$l"; done \
    <"$P/driver/nvidia/version"
  grep -H '' "$P"/driver/nvidia/gpus/*/information 2>/dev/null
  return 0
)

# Prints $hw_out as the body of a section, with the status that it ended with.
hw_emit() {
  printf '%s\n' "$hw_out"
  return "$1"
}

# hw_run SECTION COMMAND...: a section that keeps its output ($hw_out) and status ($hw_rc).
hw_run() {
  hw_s=$1
  shift
  hw_out=$("$@" 2>&1 </dev/null)
  hw_rc=$?
  sec "$hw_s" hw_emit $hw_rc
}

# A tool that hung once hangs again: after a time-out nothing more is asked of it.
hw_next() {
  case $hw_rc in 124 | 137) ;; *) hw_run "$@" ;; esac
}

# The name comes last: it may hold commas. mig.mode.current stands before the UUID, so that
# the shell can see it. pstate is there because a dead card answers memory and not this.
hw_query() {
  $T nvidia-smi --query-gpu="index$1,uuid,pci.bus_id,pstate,memory.total,memory.used,\
memory.free,driver_version,persistence_mode,compute_mode,pcie.link.width.current,\
pcie.link.width.max,name" --format=csv,nounits
}

# Of the fields that not every driver has: those that this one lists.
hw_known() (
  h=$($T nvidia-smi --help-query-gpu 2>&1 </dev/null)
  for k in $hw_more; do
    case $h in *"\"$k\""*) printf ',%s' "$k" ;; esac
  done
)

# "pid<TAB>line of its cgroup file" for each process of $1, the list of compute-apps.
hw_cgroups() (
  set -f
  IFS=$hw_nl
  for l in $1; do
    p=${l#*, }
    p=${p%%,*}
    case $p in '' | *[!0-9]*) continue ;; esac
    [ -r "$P/$p/cgroup" ] || continue
    while IFS= read -r l; do
      case $l in 0::* | *:name=systemd:*) printf '%s\t%s\n' "$p" "$l" ;; esac
    done <"$P/$p/cgroup" 2>/dev/null
  done
  return 0
)

# On a MIG box: the memory of the slices, which only the XML has; the rest of it is dropped.
hw_slices() (
  x=$($T nvidia-smi -q -x 2>&1 </dev/null)
  r=$?
  printf '%s\n' "$x" | grep -E '<(gpu id|/gpu>|/?mig_device>|index>|/?fb_memory_usage>|total>)'
  return $r
)

hw_nvidia() {
  hw_out=
  if ! command -v nvidia-smi >/dev/null 2>&1; then
    sec nv.full hw_emit 127
    return
  fi
  hw_more='memory.reserved compute_cap addressing_mode remapped_rows.pending
    remapped_rows.failure gpu_recovery_action mig.mode.current'
  hw_out=$(for hw_k in $hw_more; do set -- "$@" "$hw_k"; done
    hw_query "$(printf ',%s' "$@")" 2>&1 </dev/null)
  hw_rc=$?
  if [ $hw_rc = 2 ]; then # one field that the driver does not know voids the whole query
    hw_out=$(hw_query "$(hw_known)" 2>&1 </dev/null)
    hw_rc=$?
  fi
  sec nv.full hw_emit $hw_rc
  if [ $hw_rc != 0 ]; then
    hw_next nv.list $T nvidia-smi -L
    return
  fi
  hw_rows=$hw_out
  hw_next nv.apps $T nvidia-smi \
    --query-compute-apps=gpu_uuid,pid,used_memory,process_name --format=csv,noheader,nounits
  [ -z "$hw_out" ] || sec nv.units hw_cgroups "$hw_out"
  hw_next nv.topo $T nvidia-smi topo -m
  case $hw_rows in # peer access is between two GPUs: a header and two rows
    *"$hw_nl"*"$hw_nl"*) hw_next nv.p2p $T nvidia-smi topo -p2p r ;;
  esac
  case $hw_rows in
    *', Enabled, GPU-'*)
      hw_next nv.list $T nvidia-smi -L
      hw_next nv.slices hw_slices
      ;;
  esac
  hw_next nv.version $T nvidia-smi --version
}

hw_others() {
  hw_rc=0
  if command -v amd-smi >/dev/null 2>&1; then
    hw_run amd.static $T amd-smi static
  fi
  if command -v hl-smi >/dev/null 2>&1; then
    hw_run hl.core $T hl-smi -f csv \
      -Q index,uuid,bus_id,module_id,name,memory.total,memory.used,memory.free,driver_version
  fi
}

sec numa hw_numa
sec numabind hw_bind
sec host hw_host
sec pci hw_pci
sec nvproc hw_nvproc
hw_nvidia
hw_others
