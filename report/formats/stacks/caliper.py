# SPDX-License-Identifier: Apache-2.0
"""Write call trees as files of Caliper (.cali), which Hatchet and Thicket read with caliper-reader."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence

from quipu.modeling.experiment import CallTree, FloatArray, Metric
from quipu.modeling.printable import one_line, printable

from .weighted import Sample, WeightedStacks

# Number of the first free node: nodes with smaller numbers are predefined and equal in every file. The numbers of types
# and properties below are from cali_types.h and cali.h of Caliper.
PREDEFINED = 12
_UINT, _STRING, _DOUBLE = 2, 3, 5
_NAME, _PROPERTIES = 8, 10
_NESTED, _VALUE, _GLOBAL = 256 + 20, 64 + 1, 512
_UNITS = {"s": "sec"}
# Names of metadata in files that Quipu writes. TITLE: title of a call tree. PARAMETERS: names of the parameters of a
# run. REPETITION: number of the repetition. LINKER_NAMES: JSON object with the linker name of each name in the file.
TITLE, PARAMETERS, REPETITION = "quipu.title", "quipu.parameters", "quipu.repetition"
LINKER_NAMES = "quipu.linker_names"
_CALIPER_NAMES = {"time": "sum#time.duration", "visits": "sum#rc.count"}


def caliper(stacks: WeightedStacks) -> str:
    """Return a file with the exclusive values of one call tree. Several samples become ranks."""
    return caliper_text(stacks.tree, stacks.metrics, stacks.samples, {TITLE: stacks.title})


def caliper_text(
    tree: CallTree, metrics: Sequence[Metric], samples: Sequence[Sample], run: Mapping[str, str | float]
) -> str:
    """Return a file with a record for each call path and sample. Missing values (NaN) are left out.

    run: metadata of the run, which become columns in Thicket. Several samples become ranks, numbered from 0.
    """
    lines: list[str] = []
    numbers: dict[str, int] = {}

    def node(attribute: int, data: str, parent: int) -> int:
        number = PREDEFINED + len(lines)
        lines.append(f"__rec=node,id={number},attr={attribute},data={_escaped(data)},parent={parent}")
        return number

    def attribute(name: str, kind: int, properties: int, *described: tuple[int, str]) -> int:
        for key, text in described:
            kind = node(key, text, kind)
        numbers[name] = node(_NAME, name, node(_PROPERTIES, str(properties), kind))
        return numbers[name]

    alias = attribute("attribute.alias", _STRING, 64)
    unit = attribute("attribute.unit", _STRING, 64)
    region = attribute("region", _STRING, _NESTED)
    rank = attribute("mpi.rank", _UINT, _VALUE) if len(samples) > 1 else 0
    attributes = {metric.name: _attribute_name(metric.name, {"region", "mpi.rank", *run}) for metric in metrics}
    for metric in metrics:
        described = [(alias, metric.name)] + (
            [(unit, _UNITS.get(metric.unit, metric.unit))] if metric.unit != "1" else []
        )
        attribute(attributes[metric.name], _DOUBLE, _VALUE, *described)
    if named := _linker_names(tree):
        run = {**run, LINKER_NAMES: json.dumps(named, ensure_ascii=True)}
    for name, value in run.items():
        attribute(name, _STRING if isinstance(value, str) else _DOUBLE, _GLOBAL | _VALUE)
    nodes: list[int] = []
    records = []
    for path, parent in enumerate(tree.parent.tolist()):
        step = _step(tree, path)
        number = PREDEFINED + len(lines)
        above = f",parent={nodes[parent]}" if parent >= 0 else ""
        lines.append(f"__rec=node,id={number},data={_escaped(step)},attr={region}{above}")
        nodes.append(number)
        for place, sample in enumerate(samples):
            values = {metric.name: float(sample.values[metric.name][path]) for metric in metrics}
            known = {name: value for name, value in values.items() if not math.isnan(value)}
            if known:
                columns = [numbers[attributes[name]] for name in known] + [rank] * bool(rank)
                data = [repr(value) for value in known.values()] + [str(place)] * bool(rank)
                records.append(f"__rec=ctx,ref={number},attr={_joined(columns)},data={_joined(data)}")
    texts = [_escaped(one if isinstance(one, str) else f"{one:.17g}") for one in run.values()]
    ends = f"__rec=globals,attr={_joined(numbers[name] for name in run)},data={_joined(texts)}"
    return "\n".join([*lines, *records, ends, ""])


def run_text(
    tree: CallTree,
    metrics: Sequence[Metric],
    values: Mapping[str, FloatArray],
    parameters: Mapping[str, float],
    run: int,
) -> str:
    """Return a file with one run of an experiment.

    values: exclusive values of each metric, shape (call paths,). run: number of the repetition.
    """
    metadata: dict[str, str | float] = {
        **parameters,
        PARAMETERS: " ".join(parameters),
        REPETITION: float(run),
    }
    return caliper_text(tree, metrics, [Sample("", values)], metadata)


def is_of_quipu(text: str) -> bool:
    """Return whether Quipu wrote a file of Caliper. text: its content."""
    head = text.partition("__rec=ctx,")[0]
    return head.startswith("__rec=node,") and any(f",data={name}," in head for name in (TITLE, PARAMETERS))


def _attribute_name(metric: str, others: Container[str]) -> str:
    """Return the name of the attribute of a metric: its name in Caliper, after "sum#" if that name is in use."""
    name = _CALIPER_NAMES.get(metric, metric)
    return f"sum#{name}" if name in others else name


def _step(tree: CallTree, path: int) -> str:
    return one_line(tree.unique_steps[path]) or "?"


def _linker_names(tree: CallTree) -> dict[str, str]:
    """Return the linker names that differ from the name in the file, by name in the file, where both are unique."""
    pairs = {(_step(tree, path), tree.region_of(path).name) for path in range(len(tree))}
    steps, names = (Counter(pair[place] for pair in pairs) for place in (0, 1))
    return {step: name for step, name in sorted(pairs) if step != name and steps[step] == names[name] == 1}


def _joined(parts: Iterable[object]) -> str:
    return "=".join(map(str, parts))


def _escaped(text: str) -> str:
    return printable(text).replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=").replace("\n", "\\n")
