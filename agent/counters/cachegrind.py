# SPDX-License-Identifier: Apache-2.0
"""Counts of simulated caches, for machines without hardware counters: an additional run of the ranks under valgrind.

Valgrind's tool callgrind simulates the same caches as its tool cachegrind, and also records callers. The additional run
is 20 to 100 times slower than the program. This does not affect the counts.
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
"""Length of the chains of callers for which callgrind counts separately."""
SLOWER = (20, 100)
"""Smallest and largest usual slowdown under callgrind (manual of cachegrind)."""
EVENTS = ("Ir", "Dr", "Dw", "D1mr", "D1mw", "DLmr", "DLmw")
_RANK = "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${PMIX_RANK:-${SLURM_PROCID:-0}}}}"
_VALGRIND = "valgrind --quiet --demangle=no --tool=callgrind --cache-sim=yes --log-file={log}$rank-%p"
# _LOG: prefix of the files with messages of valgrind. _WARNING: begin of a message that is no error. In a virtual
# machine, valgrind warns about each cache whose size is not given as an option.
_LOG, _WARNING = "valgrind-", "warning: "
# The script that runs a rank of a compiled program. Valgrind 3.19 cannot read the debug information of newer compilers
# (DWARF 5). The script therefore runs a copy of the program without debug information, but with its symbols. Python is
# not copied, because it searches for its modules relative to its executable. $ORIGIN in the library path of a program
# means the folder of the executable, which differs for the copy. The script therefore replaces $ORIGIN and puts the
# library path into LD_LIBRARY_PATH: at the begin for RPATH, at the end for RUNPATH, like the search order of ld.so(8).
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
    """Return the shell script that runs a rank under callgrind with these options.

    Callgrind writes one file per process into the folder `raw`: `prefix`, rank, "-", process id. python: the program is
    measured by Python functions. Each compiled function then counts for the Python function that calls it.
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
    """Return the option of valgrind that gives a cache ("D1" or "LL") its size, ways, and bytes per line.

    Valgrind only accepts numbers of sets that are powers of two. The number of sets is therefore rounded down to a
    power of two, and the number of ways results from the size.
    """
    sets = 1 << max(0, (max(1, bytes_of_it // (line * max(1, ways)))).bit_length() - 1)
    return (
        f"--{name}={max(1, bytes_of_it // (line * sets)) * line * sets},{max(1, bytes_of_it // (line * sets))},{line}"
    )


def _options_of(caches: Sequence[Cache]) -> list[str]:
    """Return the options for the first and the last of these caches; none if there are fewer than two caches.

    The size is the measured effective size of a cache if it is known, otherwise its nominal size.
    """
    if len(caches) < 2:
        return []
    named = (("D1", caches[0]), ("LL", caches[-1]))
    return [
        cache_option(name, int(cache.effective or cache.bytes), int(cache.ways) or 8, int(cache.line))
        for name, cache in named
    ]


@dataclass
class Found:
    """The counts of callgrind in one run.

    ranks: exclusive counts of each rank, shape (call paths, EVENTS). problems: texts about missing counts. costs: the
    content of one of the files; None if there is no readable file. seen: linker names of all functions in the files.
    """

    ranks: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    costs: Costs | None = None
    seen: set[str] = field(default_factory=set)

    def of(self, numbers: Sequence[int], paths: int) -> NDArray[np.int64]:
        """Return the counts of these ranks, shape (ranks, call paths, EVENTS); 0 for a rank without files.

        paths: the number of call paths.
        """
        nothing = np.zeros((paths, len(EVENTS)), dtype=np.int64)
        rows = [self.ranks.get(number, nothing) for number in numbers]
        return np.stack(rows) if rows else np.zeros((0, paths, len(EVENTS)), dtype=np.int64)


def found_in(raw: Path, prefix: str, tree: CallTree) -> Found:
    """Read the files of callgrind in a raw folder whose names begin with `prefix`; add the processes of each rank.

    Unreadable files are left out and become texts in `problems`.
    """
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
    """Return the first message of valgrind that is not a warning; empty if there is none."""
    for file in sorted(raw.glob(f"{_LOG}{prefix}*")):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            text = re.sub(r"^(==|--)\d+(==|--) ?", "", line).strip()
            if text and not text.startswith(_WARNING):
                return text
    return ""


def facts_of(name: str, found: Found, tree: CallTree) -> Mapping[str, Any]:
    """Return the facts about a source for the archive.

    source: `name`. version: of valgrind. caches: descriptions of the simulated caches. with_callers: functions that the
    compiler inlined, so that their counts are in the counts of their callers.
    """
    return {
        "source": name,
        "version": found.costs.version if found.costs is not None else "",
        "caches": found.costs.caches if found.costs is not None else {},
        "with_callers": inlined(tree, found.seen) if found.costs is not None else [],
    }


class Cachegrind(CounterSource):
    """Counts instructions, and loads and stores by the cache level that serves them in a simulation.

    caches: the caches to simulate. Default: the caches that the kernel describes, because valgrind itself asks the
    processor, which in a virtual machine may describe the caches of the whole host.
    """

    name = "cachegrind"

    def __init__(self, caches: Sequence[Cache] = ()) -> None:
        self.caches = tuple(caches)

    def of_machine(self, machine: Machine) -> Cachegrind:
        """Return a source that simulates the caches of a machine. Raises UsageError for fewer than two caches."""
        if len(machine.caches) < 2:
            raise UsageError(f"--machine: the description of {machine.host} contains fewer than two caches to simulate")
        return Cachegrind(machine.caches)

    def metrics(self) -> tuple[Metric, ...]:
        """Return the metrics of the two simulated cache levels."""
        return tuple(COUNTERS[name] for name in ("cpu_instructions", "l1_hits", "llc_hits", "memory_accesses"))

    def unavailable(self, names: Sequence[str] = ()) -> str:
        """Return an error text if valgrind is not installed; empty if it is."""
        return "" if shutil.which("valgrind") else "valgrind is not installed: apt-get install valgrind"

    def shims(self, raw: Path, python: bool = False) -> tuple[str, ...]:
        """Return the script that runs a rank under callgrind."""
        return (shim_of(raw, PREFIX, _options_of(self.caches or known_caches()), python),)

    def collect(
        self, raw: Path, tree: CallTree, wanted: Wanted, attributes: Sequence[Mapping[str, str]] = ()
    ) -> Counted:
        """Return the exclusive counts of each call path and rank, summed over the processes of the rank."""
        found = found_in(raw, PREFIX, tree)
        numbers = tuple(sorted(found.ranks))
        values = levels_of(found.of(numbers, len(tree)), EVENTS)
        metrics = wanted.chosen(self.metrics())
        facts = facts_of(self.name, found, tree)
        return Counted(metrics, numbers, {m.name: values[m.name] for m in metrics}, facts, tuple(found.problems))


def _in_order(found: NDArray[np.int64], events: Sequence[str]) -> NDArray[np.int64]:
    """Return the columns of `found` (call paths, events) in the order of EVENTS; 0 for an event that is missing."""
    columns = [found[:, events.index(name)] if name in events else np.zeros(len(found), np.int64) for name in EVENTS]
    return np.stack(columns, axis=1)
