# SPDX-License-Identifier: Apache-2.0
"""Measure reuse distances of memory accesses by the misses of simulated caches of many sizes.

The reuse distance of an access is the number of other bytes used since the last access to its cache line. The access
misses a cache with least-recently-used replacement if this distance is larger than the cache (Mattson et al. 1970). The
misses of caches of many sizes therefore give the distribution of the reuse distance. Models use this distribution to
predict misses at other problem sizes (modeling/kernels/reuse.py).

Every run simulates two caches. The last cache only sees the accesses that miss the first cache. Some runs also simulate
the stream prefetcher of valgrind. The misses of their last cache are those that such a prefetcher does not avoid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.counters import COUNTERS, MISSES, SCATTERED
from quipu.modeling.errors import UsageError
from quipu.modeling.experiment import CallTree, Metric
from quipu.modeling.machine import Machine

from .cachegrind import EVENTS, Cachegrind, cache_option, facts_of, found_in, shim_of
from .source import Counted, Wanted

_WAYS, _LINE = 16, 64  # _LINE: bytes of a cache line
# Sizes of the first and the last cache of each run (KiB), and whether the run simulates the prefetcher.
_RUNS = (
    (8, 64, True),
    (16, 512, True),
    (32, 1536, False),
    (64, 2048, False),
    (96, 3072, False),
    (128, 4096, False),
    (192, 6144, False),
    (256, 8192, False),
    (384, 12288, False),
    (512, 16384, False),
    (768, 24576, False),
    (1024, 32768, False),
)


class Reuse(Cachegrind):
    """Counts loads and stores that miss caches of many sizes, and misses that a prefetcher does not avoid."""

    name = "reuse"

    def of_machine(self, machine: Machine) -> Cachegrind:
        """Raise UsageError, because this source simulates fixed cache sizes."""
        raise UsageError("--machine: belongs to --counters cachegrind; reuse simulates caches of many sizes")

    def metrics(self) -> tuple[Metric, ...]:
        """Return instructions, accesses, misses by cache size, and misses that a prefetcher does not avoid."""
        return tuple(COUNTERS[name] for name in ("cpu_instructions", "accesses", *MISSES.values(), *SCATTERED.values()))

    def shims(self, raw: Path, python: bool = False) -> tuple[str, ...]:
        """Return the scripts that run a rank under callgrind, one for each pair of caches."""
        scripts = []
        for number, (first, last, prefetches) in enumerate(_RUNS):
            caches = (("D1", first), ("LL", last))
            options = [cache_option(name, size * 1024, _WAYS, _LINE) for name, size in caches]
            options += ["--simulate-hwpref=yes"] if prefetches else []
            scripts.append(shim_of(raw, _prefix(number), options, python))
        return tuple(scripts)

    def collect(
        self, raw: Path, tree: CallTree, wanted: Wanted, attributes: Sequence[Mapping[str, str]] = ()
    ) -> Counted:
        """Return the exclusive counts of each call path and rank, summed over the processes of the rank.

        Each metric comes from one of the runs. A rank without files of one of the runs is left out.
        """
        runs = [found_in(raw, _prefix(number), tree) for number in range(len(_RUNS))]
        numbers = tuple(sorted(set.intersection(*(set(found.ranks) for found in runs))))
        values: dict[str, NDArray[np.int64]] = {}
        for (first, last, prefetches), found in zip(_RUNS, runs, strict=True):
            counts = found.of(numbers, len(tree))
            column = {name: counts[..., place] for place, name in enumerate(EVENTS)}
            values.setdefault("cpu_instructions", column["Ir"])
            values.setdefault("accesses", column["Dr"] + column["Dw"])
            values.setdefault(MISSES[first * 1024], column["D1mr"] + column["D1mw"])
            of_last = column["DLmr"] + column["DLmw"]
            if prefetches:
                values[SCATTERED[last * 1024]] = of_last
            else:
                values.setdefault(MISSES[last * 1024], of_last)
        metrics = wanted.chosen(self.metrics())
        problems = tuple(dict.fromkeys(problem for found in runs for problem in found.problems))
        facts = {**facts_of(self.name, runs[0], tree), "caches": {}}
        return Counted(metrics, numbers, {m.name: values[m.name] for m in metrics}, facts, problems)


def _prefix(number: int) -> str:
    return f"reuse{number}-"
