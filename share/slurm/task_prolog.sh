#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TaskProlog of Slurm, as the user, before each task: lines `export NAME=VALUE` on its output set variables of the task.
# The PMPI library that is built for each MPI is kept where all nodes see it, unless the user says where.
shared=${QUIPU_SHARED_CACHE:-/scratch/$USER/cache}
if [ -z "$XDG_CACHE_HOME" ] && mkdir -p "$shared" 2>/dev/null; then
    echo "export XDG_CACHE_HOME=$shared"
fi
exit 0
