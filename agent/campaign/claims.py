# SPDX-License-Identifier: Apache-2.0
"""Check that parameters which models use as numbers of ranks or threads agree with the launch of a run."""

from __future__ import annotations

from collections.abc import Mapping

from quipu.modeling.limits import whole_number
from quipu.modeling.parameter_names import RANK_NAMES, THREAD_NAMES

ONE_OF_RANKS = "QUIPU_ONE_OF_RANKS"
"""Environment variable that is 1 if a single process does the computation of one rank."""


def wrong_ranks(parameters: Mapping[str, float], ranks: int | None) -> str:
    """Return the error of a parameter with a name for the number of ranks; empty if it is correct or unknown.

    ranks: number of launched processes.
    """
    claimed = {name: value for name, value in parameters.items() if name in RANK_NAMES}
    if ranks is None or not claimed or ranks in claimed.values():
        return ""
    name, value = next(iter(claimed.items()))
    return (
        f"parameter {name} = {value:g} is the number of ranks for models, but the command starts {ranks}: "
        f"correct one of the two, or give the parameter another name than {', '.join(RANK_NAMES)}; if one process "
        f"does the work of one of {value:g} ranks, set {ONE_OF_RANKS}=1"
    )


def wrong_threads(parameters: Mapping[str, float], environment: Mapping[str, str]) -> str:
    """Return the error of a parameter with a name for the number of threads; empty if it is correct."""
    threads = whole_number(environment.get("OMP_NUM_THREADS", ""), 9)
    claimed = {name: value for name, value in parameters.items() if name in THREAD_NAMES}
    if threads is None or not claimed or threads in claimed.values():
        return ""
    name, value = next(iter(claimed.items()))
    return (
        f"parameter {name} = {value:g} has a name for the number of threads, but OMP_NUM_THREADS is {threads}: "
        "correct one of the two, or give the parameter another name"
    )
