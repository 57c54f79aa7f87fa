#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prolog of Slurm, as root on each node: jobs that ask for the feature hwperf (sbatch --constraint=hwperf) may read the
# counters of the processor. Give the feature to nodes in slurm.conf (Features=hwperf), best with OverSubscribe=EXCLUSIVE:
# what is allowed here is allowed to all who run on the node. epilog.sh takes it back.
setting=${QUIPU_PERF_SETTING:-/proc/sys/kernel/perf_event_paranoid}
kept=${QUIPU_PERF_KEPT:-/run/quipu-perf_event_paranoid}
case ",$SLURM_JOB_CONSTRAINTS," in
*[,\&\|]hwperf[,\&\|]*)
    [ -e "$kept" ] || cat "$setting" >"$kept"
    [ "$(cat "$setting")" -le 1 ] || echo 1 >"$setting"
    ;;
esac
exit 0 # a prolog that fails drains the node
