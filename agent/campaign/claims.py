# SPDX-License-Identifier: Apache-2.0
"""Check parameters whose names mean a number of ranks or threads for models: they must agree with the launch."""

from __future__ import annotations

from collections.abc import Mapping

from quipu.modeling.limits import whole_number
from quipu.modeling.parameter_names import RANK_NAMES, THREAD_NAMES

ONE_OF_RANKS = "QUIPU_ONE_OF_RANKS"
"""Environment variable that a user sets to 1 if one process does the work of one rank of a larger run. The parameter is
then the number of ranks of the larger run, and `wrong_ranks` is not checked."""


def wrong_ranks(parameters: Mapping[str, float], ranks: int | None) -> str:
    """Return an error message if no parameter named as a number of ranks has the value `ranks`; "" otherwise.

    ranks: number of launched processes; None: unknown, which is no error.
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
    """Return an error message if no parameter named as a number of threads has the value of OMP_NUM_THREADS; else "".

    There is no error if no parameter has one of these names, or if OMP_NUM_THREADS is not one number.
    """
    threads = whole_number(environment.get("OMP_NUM_THREADS", ""), 9)
    claimed = {name: value for name, value in parameters.items() if name in THREAD_NAMES}
    if threads is None or not claimed or threads in claimed.values():
        return ""
    name, value = next(iter(claimed.items()))
    return (
        f"parameter {name} = {value:g} has a name for the number of threads, but OMP_NUM_THREADS is {threads}: "
        "correct one of the two, or give the parameter another name"
    )
