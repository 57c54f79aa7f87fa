# SPDX-License-Identifier: Apache-2.0
"""Counters of simulated caches, for machines without hardware counters: an additional run of the ranks under valgrind.

Callgrind simulates the same caches as cachegrind, and records callers. The additional run is 20 to 100 times slower,
which does not affect the counts.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from quipu.modeling.counters import COUNTERS
from quipu.modeling.errors import FormatError, UsageError
from quipu.modeling.experiment import CallTree, Metric
from quipu.modeling.machine import Cache, Machine

from ..installation import native_file
from ..machine.describe import known_caches
from . import python_paths
from .attribution import attributed, inlined, levels_of
from .callgrind import Costs, read_callgrind
from .source import Counted, CounterSource, Wanted

PREFIX = "callgrind-"
DEPTH = 12
"""Number of callers that are distinguished."""
SLOWER = (20, 100)
"""Range of the slowdown under callgrind (manual of cachegrind)."""
EVENTS = ("Ir", "Dr", "Dw", "D1mr", "D1mw", "DLmr", "DLmw")
_RANK = "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${PMIX_RANK:-${SLURM_PROCID:-0}}}}"
_VALGRIND = "valgrind --quiet --demangle=no --tool=callgrind --cache-sim=yes --log-file={log}$rank-%p"
# Names of files with messages of valgrind. In a virtual machine, valgrind warns about caches without an explicit size.
_LOG, _WARNING = "valgrind-", "warning: "
# Valgrind 3.19 cannot read the debug information of newer compilers (DWARF 5). It therefore runs a copy of the program
# without debug information; the symbols stay. An interpreter is not copied, because it finds its modules relative to
# its program. $ORIGIN in the library path of a program means the folder of the original. The script therefore puts this
# path into LD_LIBRARY_PATH: first for RPATH, last for RUNPATH, as in ld.so(8).
_SHIM = """#!/bin/sh
rank={rank}
program=$(command -v -- "$1") || program=$1
shift
copy={raw}/program-$rank
case ${{program##*/}} in
    python*) copy=$program ;;
    *) objcopy --strip-debug -- "$program" "$copy" 2>/dev/null || copy=$program ;;
esac
search() {{ readelf -d -- "$program" 2>/dev/null | sed -n "s/.*($1)[^[]*\\[\\(.*\\)\\]\\$/\\1/p"; }}
kind=RUNPATH path=$(search RUNPATH)
[ "$path" ] || kind=RPATH path=$(search RPATH)
case $path in *ORIGIN*)
    folder=$(dirname -- "$(readlink -f -- "$program")") libraries=
    IFS=: && set -f
    for entry in $path; do
        case $entry in
            '$ORIGIN'*) entry=$folder${{entry#'$ORIGIN'}} ;;
            '${{ORIGIN}}'*) entry=$folder${{entry#'${{ORIGIN}}'}} ;;
        esac
        libraries=$libraries${{libraries:+:}}$entry
    done
    unset IFS
    if [ $kind = RPATH ]; then
        LD_LIBRARY_PATH=$libraries${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}
    else
        LD_LIBRARY_PATH=${{LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}}$libraries
    fi
    export LD_LIBRARY_PATH ;;
esac
exec {valgrind} {options}\\
    --callgrind-out-file={raw}/{prefix}$rank-%p "$copy" "$@" >/dev/null
"""
_PYTHON = """#!/bin/sh
rank={rank}
export {variable}={raw}/{paths}$rank- PYTHONPATH={hook}"${{PYTHONPATH:+:$PYTHONPATH}}"
exec {valgrind} {options}\\
    --callgrind-out-file={raw}/{prefix}$rank-%p "$@" >/dev/null
"""


def shim_of(raw: Path, prefix: str, options: Sequence[str], python: bool = False) -> str:
    """Return the script that runs a rank under callgrind with these options and writes files with this prefix.

    python: functions of Python are regions, and the cost of compiled functions belongs to the calling Python function.
    """
    kept = python_paths.OPTIONS if python else (f"--separate-callers={DEPTH}",)
    words = "".join(f"{shlex.quote(option)} " for option in (*kept, *options))
    quoted = shlex.quote(str(raw))
    valgrind = _VALGRIND.format(log=f"{quoted}/{_LOG}{prefix}")
    common = {"rank": _RANK, "raw": quoted, "prefix": prefix, "options": words, "valgrind": valgrind}
    if not python:
        return _SHIM.format(**common)
    hook = shlex.quote(str(native_file("python")))
    names = {"variable": python_paths.VARIABLE, "paths": python_paths.prefix_of(prefix), "hook": hook}
    return _PYTHON.format(**common, **names)


def cache_option(name: str, bytes_of_it: int, ways: int, line: int) -> str:
    """Return the option of a cache ("D1", "LL"). Valgrind needs a power of two of sets, which determines the ways."""
    sets = 1 << max(0, (max(1, bytes_of_it // (line * max(1, ways)))).bit_length() - 1)
    return (
        f"--{name}={max(1, bytes_of_it // (line * sets)) * line * sets},{max(1, bytes_of_it // (line * sets))},{line}"
    )


def _options_of(caches: Sequence[Cache]) -> list[str]:
    """Return the options for caches, with the measured effective size of a cache if it is known."""
    if len(caches) < 2:
        return []
    named = (("D1", caches[0]), ("LL", caches[-1]))
    return [
        cache_option(name, int(cache.effective or cache.bytes), int(cache.ways) or 8, int(cache.line))
        for name, cache in named
    ]


@dataclass
class Found:
    """The counts of callgrind: EVENTS per call path, by rank.

    costs: the content of one file, None if there is no file. seen: all functions.
    """

    ranks: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    costs: Costs | None = None
    seen: set[str] = field(default_factory=set)

    def of(self, numbers: Sequence[int], paths: int) -> NDArray[np.int64]:
        """Return the counts of ranks, shape (ranks, call paths, events); 0 for a rank without files."""
        nothing = np.zeros((paths, len(EVENTS)), dtype=np.int64)
        rows = [self.ranks.get(number, nothing) for number in numbers]
        return np.stack(rows) if rows else np.zeros((0, paths, len(EVENTS)), dtype=np.int64)


def found_in(raw: Path, prefix: str, tree: CallTree) -> Found:
    """Read the files with a prefix, and sum over the processes of each rank."""
    found = Found()
    for file in sorted(raw.glob(f"{prefix}*")):
        rank = file.name.removeprefix(prefix).split("-")[0]
        if not rank.isascii() or not rank.isdigit():
            continue
        paths = raw / python_paths.prefix_of(file.name)
        try:
            costs = read_callgrind(file)
            known = python_paths.read_paths(paths) if paths.exists() else None
        except FormatError as error:
            found.problems.append(str(error))
            continue
        if known is None:
            values, _ = attributed(tree, costs.of.items(), len(costs.events))
        else:
            values, unknown = python_paths.costs_of_python(tree, costs, known)
            found.problems.extend(unknown)
        found.ranks[int(rank)] = found.ranks.get(int(rank), 0) + _in_order(values, costs.events)
        found.costs = costs
        found.seen.update(function for chain in costs.of for function in chain)
    if found.costs is None:
        found.problems.append(f"valgrind counted nothing: {_first_message(raw, prefix) or 'it printed no reason'}")
    return found


def _first_message(raw: Path, prefix: str) -> str:
    """Return the first message of valgrind in a run that is not a warning."""
    for file in sorted(raw.glob(f"{_LOG}{prefix}*")):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            text = re.sub(r"^(==|--)\d+(==|--) ?", "", line).strip()
            if text and not text.startswith(_WARNING):
                return text
    return ""


def facts_of(name: str, found: Found, tree: CallTree) -> Mapping[str, Any]:
    """Return the facts of a source for the archive: version of valgrind, simulated caches, functions without costs."""
    return {
        "source": name,
        "version": found.costs.version if found.costs is not None else "",
        "caches": found.costs.caches if found.costs is not None else {},
        "with_callers": inlined(tree, found.seen) if found.costs is not None else [],
    }


class Cachegrind(CounterSource):
    """Instructions, and loads and stores by the level of a simulated cache that serves them.

    caches: the caches to simulate; default: the caches that the kernel describes. (Valgrind asks the processor, which
    in a virtual machine may describe the caches of the whole host.)
    """

    name = "cachegrind"

    def __init__(self, caches: Sequence[Cache] = ()) -> None:
        self.caches = tuple(caches)

    def of_machine(self, machine: Machine) -> Cachegrind:
        """Return the source that simulates the caches of a machine. Raises UsageError for less than two caches."""
        if len(machine.caches) < 2:
            raise UsageError(f"--machine: the description of {machine.host} contains fewer than two caches to simulate")
        return Cachegrind(machine.caches)

    def metrics(self) -> tuple[Metric, ...]:
        """Return the metrics of a simulated cache with two levels."""
        return tuple(COUNTERS[name] for name in ("cpu_instructions", "l1_hits", "llc_hits", "memory_accesses"))

    def unavailable(self, names: Sequence[str] = ()) -> str:
        """Return an error text if valgrind is not installed."""
        return "" if shutil.which("valgrind") else "valgrind is not installed: apt-get install valgrind"

    def shims(self, raw: Path, python: bool = False) -> tuple[str, ...]:
        """Return the script that runs a rank under callgrind."""
        return (shim_of(raw, PREFIX, _options_of(self.caches or known_caches()), python),)

    def collect(
        self, raw: Path, tree: CallTree, wanted: Wanted, attributes: Sequence[Mapping[str, str]] = ()
    ) -> Counted:
        """Return the counts of the ranks, summed over the processes of a rank."""
        found = found_in(raw, PREFIX, tree)
        numbers = tuple(sorted(found.ranks))
        values = levels_of(found.of(numbers, len(tree)), EVENTS)
        metrics = wanted.chosen(self.metrics())
        facts = facts_of(self.name, found, tree)
        return Counted(metrics, numbers, {m.name: values[m.name] for m in metrics}, facts, tuple(found.problems))


def _in_order(found: NDArray[np.int64], events: Sequence[str]) -> NDArray[np.int64]:
    """Return the columns of EVENTS; 0 for an event that callgrind did not count."""
    columns = [found[:, events.index(name)] if name in events else np.zeros(len(found), np.int64) for name in EVENTS]
    return np.stack(columns, axis=1)
