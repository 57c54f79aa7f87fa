# SPDX-License-Identifier: Apache-2.0
"""Names of parameters that say how many ranks or threads a run has."""

from __future__ import annotations

RANK_NAMES = ("p", "P", "ranks", "processes", "procs", "np", "nprocs")
"""What the number of ranks is called; where an experiment has several of these, the first is the likeliest."""
THREAD_NAMES = ("t", "threads", "nthreads", "num_threads", "omp_threads")
"""What the number of OpenMP threads is called."""
