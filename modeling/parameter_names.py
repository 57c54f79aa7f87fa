# SPDX-License-Identifier: Apache-2.0
"""Names of parameters for the number of ranks or threads of a run."""

from __future__ import annotations

RANK_NAMES = ("p", "P", "ranks", "processes", "procs", "np", "nprocs")
"""Names for the number of ranks, in order of preference if an experiment has several of them."""
THREAD_NAMES = ("t", "threads", "nthreads", "num_threads", "omp_threads")
"""Names for the number of OpenMP threads."""
