"""Counters of a simulated cache: the ranks run once more, under valgrind. For machines that count nothing themselves.

Callgrind simulates the caches as cachegrind does, of this processor's sizes, and keeps who called whom. The run of its
own is 20 to 100 times slower; what is counted does not depend on it.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from quipu.modeling.counters import COUNTERS
from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import CallTree, Metric

from .attribution import attributed, inlined, levels_of
from .callgrind import Costs, read_callgrind
from .source import Counted, CounterSource, Wanted

PREFIX = "callgrind-"
DEPTH = 12
"""Callers that are kept apart."""
_RANK = "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${PMIX_RANK:-${SLURM_PROCID:-0}}}}"
# Valgrind 3.19 gives up on the debug information of newer compilers (DWARF 5), so it gets a copy without; the names of
# functions stay.
_SHIM = """#!/bin/sh
rank={rank}
program=$(command -v -- "$1") || program=$1
shift
copy={raw}/program-$rank
objcopy --strip-debug -- "$program" "$copy" 2>/dev/null || copy=$program
exec valgrind --quiet --tool=callgrind --cache-sim=yes --separate-callers={depth} \\
    --callgrind-out-file={raw}/{prefix}$rank-%p "$copy" "$@" >/dev/null
"""


class Cachegrind(CounterSource):
    """Instructions, and loads and stores by the level that serves them, of a simulated cache."""

    name = "cachegrind"

    def metrics(self) -> tuple[Metric, ...]:
        """Return them; simulated caches have two levels."""
        return tuple(COUNTERS[name] for name in ("cpu_instructions", "l1_hits", "llc_hits", "memory_accesses"))

    def unavailable(self, names: Sequence[str] = ()) -> str:
        """Valgrind has to be installed."""
        return "" if shutil.which("valgrind") else "valgrind is not installed: apt-get install valgrind"

    def shim(self, raw: Path) -> str:
        """Return the script that runs a rank under callgrind."""
        return _SHIM.format(rank=_RANK, raw=shlex.quote(str(raw)), depth=DEPTH, prefix=PREFIX)

    def collect(
        self, raw: Path, tree: CallTree, wanted: Wanted, attributes: Sequence[Mapping[str, str]] = ()
    ) -> Counted:
        """Return what the ranks counted; several processes of a rank add up."""
        ranks: dict[int, np.ndarray[tuple[int, int], np.dtype[np.int64]]] = {}
        problems = []
        described: Costs | None = None
        seen: set[str] = set()
        for file in sorted(raw.glob(f"{PREFIX}*")):
            rank = file.name.removeprefix(PREFIX).split("-")[0]
            if not rank.isascii() or not rank.isdigit():
                continue
            try:
                costs = read_callgrind(file)
            except FormatError as error:
                problems.append(str(error))
                continue
            found, _ = attributed(tree, costs.of.items(), len(costs.events))
            known = _in_order(found, costs.events)
            ranks[int(rank)] = ranks.get(int(rank), 0) + known
            described = costs
            seen.update(function for chain in costs.of for function in chain)
        if described is None:
            problems.append("valgrind counted nothing: do its messages above say why?")
        numbers = tuple(sorted(ranks))
        all_costs = (
            np.stack([ranks[number] for number in numbers]) if numbers else np.zeros((0, len(tree), len(_EVENTS)))
        )
        values = levels_of(all_costs.astype(np.int64), _EVENTS)
        metrics = wanted.chosen(self.metrics())
        facts = {
            "source": self.name,
            "version": described.version if described is not None else "",
            "caches": described.caches if described is not None else {},
            "with_callers": inlined(tree, seen) if described is not None else [],
        }
        return Counted(metrics, numbers, {m.name: values[m.name] for m in metrics}, facts, tuple(problems))


_EVENTS = ("Ir", "Dr", "Dw", "D1mr", "D1mw", "DLmr", "DLmw")


def _in_order(
    found: np.ndarray[tuple[int, int], np.dtype[np.int64]], events: Sequence[str]
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Return the columns of `_EVENTS`, 0 where callgrind did not count one."""
    columns = [found[:, events.index(name)] if name in events else np.zeros(len(found), np.int64) for name in _EVENTS]
    return np.stack(columns, axis=1)
