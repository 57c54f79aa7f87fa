# SPDX-License-Identifier: Apache-2.0
"""Rates (seconds per unit of effort) of call paths, for simulations by effort, and their file format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any

import msgspec

from .documents import Count, Number, typed
from .errors import FormatError
from .machine import Machine
from .metrics import BY_PASS
from .mpi_handles import common_linker_name

FORMAT, SCHEMA = "quipu-rates", 1
_BETWEEN = "\x1f"  # separates the names of a call path, as in raw profiles
_RATED = (*BY_PASS, "visits")
_STARTED = ("main", "_QQmain")
OPERATION_METRICS = ("visits", "bytes")  # metrics of the rates of MPI operations; bytes: sent plus received

Rate = Annotated[float, msgspec.Meta(ge=0, le=1)]
"""Seconds per unit of effort."""
NotNegative = Annotated[float, msgspec.Meta(ge=0, le=1e300)]


@dataclass(frozen=True)
class PathRates:
    """Rates of a call path, of a function, or of the whole program.

    - names: linker names from the root for a call path, one name for a function, () for the program.
    - rates: seconds per unit of each metric in `Rates.metrics`; for MPI operations and their call paths, seconds per
      unit of each metric in OPERATION_METRICS.
    - share: share of the measured time; for MPI operations, share of the time in MPI.
    - residual: root mean square of the relative differences between measured and fitted time; 0.1 is 10 %.
    - measurements: number of measurements in the fit. label: the name in views.
    """

    names: tuple[str, ...]
    rates: tuple[Rate, ...]
    share: NotNegative
    residual: NotNegative
    measurements: Count
    label: str = ""


@dataclass(frozen=True)
class Rates:
    """The rates of a program on a machine.

    A call path has the first rates that exist: of the call path, of its function, of the program.

    operations, calls: rates of the MPI library by operation, and by call path. points: the configurations of the fit.
    repetitions: number of repetitions. machine: names of the host and the processor.
    """

    metrics: tuple[str, ...]
    program: PathRates
    functions: tuple[PathRates, ...] = ()
    callpaths: tuple[PathRates, ...] = ()
    operations: tuple[PathRates, ...] = ()
    calls: tuple[PathRates, ...] = ()
    experiment: str = ""
    points: tuple[Mapping[str, Number], ...] = ()
    repetitions: Count = 0
    machine: Mapping[str, str] = field(default_factory=dict)
    date: str = ""
    notes: tuple[str, ...] = ()

    def without(self, paths: Sequence[tuple[str, ...]]) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
        """Return the call paths in `paths` without separate rates, in two lists.

        Call paths in the first list get the rates of their function, in the second list the rates of the program.
        """
        known, functions = {simulated(e.names) for e in self.callpaths}, {simulated(e.names) for e in self.functions}
        missing = [path for path in paths if simulated(path) not in known]
        by_function = [simulated(path[-1:]) in functions for path in missing]
        parted = list(zip(missing, by_function, strict=True))
        return [path for path, own in parted if own], [path for path, own in parted if not own]


def simulated(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the linker names that a call path of a real run has in a simulation, for comparisons.

    A Fortran program begins in a C main, from which flang starts the main program. SMPI starts the main program of each
    rank directly (llvm_pass/wrapper/toolchain.cpp), so the C main is removed. Names are independent of the MPI
    (`common_linker_name`).
    """
    return tuple(map(common_linker_name, names[1:] if names[:2] == _STARTED else names))


def moved(rates: Rates, here: Machine, there: Machine) -> Rates:
    """Return the rates that were measured on the machine `here` scaled to the machine `there`.

    Rates of instructions, flops and MPI calls scale with the clock frequencies. Rates of loads and stores, which caches
    mostly serve, scale with the latencies of the first-level caches. Rates of bytes, which represent traffic to memory,
    scale with the bandwidths of one core.
    """
    clock = here.frequency / there.frequency
    first, second = here.bandwidth_of(1), there.bandwidth_of(1)
    level = there.latency("L1") / here.latency("L1") if here.latency("L1") > 0 else clock
    per_byte = first / second if first and second else clock
    ratios = {"loads": level, "stores": level, "bytes_loaded": per_byte, "bytes_stored": per_byte}
    factors = [ratios.get(name, clock) for name in rates.metrics]
    of_mpi = [clock, per_byte]

    def scaled(entry: PathRates, by: Sequence[float] = factors) -> PathRates:
        return replace(entry, rates=tuple(rate * one for rate, one in zip(entry.rates, by, strict=True)))

    return replace(
        rates,
        program=scaled(rates.program),
        functions=tuple(map(scaled, rates.functions)),
        callpaths=tuple(map(scaled, rates.callpaths)),
        operations=tuple(scaled(entry, of_mpi) for entry in rates.operations),
        calls=tuple(scaled(entry, of_mpi) for entry in rates.calls),
        machine={"host": there.host, "processor": there.processor},
        notes=(*rates.notes, f"measured on {here.host}, scaled to {there.host} by the descriptions of both"),
    )


def to_document(rates: Rates) -> dict[str, Any]:
    """Return rates as JSON data."""
    return {"format": FORMAT, "schema": SCHEMA, **asdict(rates)}


def from_document(content: Mapping[str, Any], source: object) -> Rates:
    """Return the rates of data that `to_document` returned.

    source: name of the file in errors. Raises FormatError for other data.
    """
    if content.get("format") != FORMAT:
        raise FormatError(source, "contains no rates: write them with quipu rates -o FILE")
    if content.get("schema") != SCHEMA:
        raise FormatError(
            source,
            f"has schema {content.get('schema')!r}, this Quipu reads schema {SCHEMA}: write it again with quipu rates",
        )
    rates = typed(content, Rates, source)
    strange = [
        name for number, name in enumerate(rates.metrics) if name not in _RATED or name in rates.metrics[:number]
    ]
    if strange or not rates.metrics:
        named = repr(strange[0]) if strange else "nothing"
        raise FormatError(source, f"metrics must be different ones of {', '.join(_RATED)}, not {named}")
    for metrics, entries in (
        (rates.metrics, (rates.program, *rates.functions, *rates.callpaths)),
        (OPERATION_METRICS, (*rates.operations, *rates.calls)),
    ):
        for entry in entries:
            if len(entry.rates) != len(metrics):
                where = "->".join(entry.names) or "the program"
                raise FormatError(source, f"{where} has {len(entry.rates)} rates for {len(metrics)} metrics")
    return rates


def runtime_text(rates: Rates) -> str:
    """Return rates as text in the format that the runtime reads in simulations (agent/runtime/rates.cpp)."""
    lines = [("metrics", *rates.metrics), ("program", *_numbers(rates.program))]
    kinds = {
        "region": rates.functions,
        "path": rates.callpaths,
        "operation": rates.operations,
        "call": rates.calls,
    }
    for kind, entries in kinds.items():
        named = ((simulated(entry.names), _numbers(entry)) for entry in entries if _fits(entry.names))
        lines += [(kind, _BETWEEN.join(names), *numbers) for names, numbers in named]
    return "".join("\t".join(line) + "\n" for line in lines)


def _numbers(entry: PathRates) -> list[str]:
    return [repr(float(rate)) for rate in entry.rates]


def _fits(names: Sequence[str]) -> bool:
    """Return whether the names can be written in one line, which is the case for all linker names."""
    return bool(names) and not any(set(name) & set("\t\n" + _BETWEEN) for name in names)
