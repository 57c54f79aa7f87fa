# SPDX-License-Identifier: Apache-2.0
"""Call trees for viewers of profiles: totals, hostile names, and what the viewers make of the files."""

from __future__ import annotations

import gzip
import json
import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from peers import needs, require
from quipu.modeling.errors import ModelingError
from quipu.modeling.experiment import CallTree, Metric, Region, RegionKind
from quipu.report.formats.stacks import chrome_trace, folded, hatchet, pprof, speedscope, weighted_stacks
from quipu.report.views import TreeView

HOSTILE = 'a;b\nc\x1b[31m "</script>\u202e\ud800 7'
REGIONS = (
    Region("main", "main", file="heat.c", line=120),
    Region("MPI_Init", "MPI_Init", RegionKind.MPI),
    Region("evil", HOSTILE, file="x;y.c", line=3),
    Region("_Z1fi", "f"),
    Region("_Z1fd", "f"),
    Region("MPI_Allreduce", "MPI_Allreduce", RegionKind.MPI),
    Region("never", "never"),
)
REGION = np.array([0, 1, 2, 3, 4, 5, 2, 6])
PARENT = np.array([-1, 0, 0, 2, 2, 4, 4, 0])
METRICS = {
    "time": Metric("time", "s"),
    "blocks": Metric("blocks", "1", "effort"),
    "bytes_sent": Metric("bytes_sent", "B", "effort"),
    "comm_size": Metric("comm_size", "1", "effort", "max"),
}


def view() -> TreeView:
    """A run of three ranks whose means are not integers."""
    rng = np.random.default_rng(3)
    shape = (len(REGION), 3)
    values = {
        "time": rng.exponential(1e-3, shape),
        "blocks": rng.integers(0, 9, shape).astype(float),
        "bytes_sent": rng.integers(0, 1 << 40, shape).astype(float),
        "comm_size": np.full(shape, 3.0),
    }
    for array in values.values():
        array[-1] = 0
    values["time"][3] = np.nan
    return TreeView("heat", CallTree(REGIONS, REGION, PARENT), METRICS, values)


def total(metric: str) -> float:
    """The metric over all call paths, the mean over ranks, in the unit of the weights."""
    exact = math.fsum(np.nan_to_num(view().values[metric].mean(axis=1)).tolist())
    return exact * (1e9 if METRICS[metric].unit == "s" else 1)


@pytest.mark.parametrize("metric", ["time", "blocks", "bytes_sent"])
def test_the_weights_add_up_and_none_is_a_unit_off(metric: str) -> None:
    stacks = weighted_stacks(view(), [metric])
    weights = stacks.weights(stacks.metrics[0], stacks.samples[0])
    assert sum(weights) == round(total(metric))
    exact = np.nan_to_num(view().values[metric].mean(axis=1)) * (1e9 if metric == "time" else 1)
    assert np.abs(np.array(weights) - exact).max() < 1
    assert weights[-1] == 0


def test_sums_are_the_inclusive_values_that_are_shown() -> None:
    stacks = weighted_stacks(view(), ["bytes_sent"])
    sums = stacks.inclusive(stacks.weights(stacks.metrics[0], stacks.samples[0]))
    shown = view().scoped("bytes_sent", "inclusive").mean(axis=1)
    assert np.allclose(sums, shown, rtol=0, atol=len(REGION))
    assert stacks.tree.roots == (0, 1)  # main without MPI_Init


def test_large_counts_stay_exact() -> None:
    large = TreeView("x", CallTree(REGIONS[:1], REGION[:1], PARENT[:1]), METRICS, {"blocks": np.array([[2.0**62]])})
    stacks = weighted_stacks(large, [])
    assert stacks.weights(METRICS["blocks"], stacks.samples[0]) == [1 << 62]
    assert decoded(pprof(stacks)).sample[0].value == [1 << 62]
    for value in (2.0**63, 1.7e308):
        larger = TreeView("x", large.tree, METRICS, {"blocks": np.array([[value]])})
        with pytest.raises(ModelingError, match="blocks adds up to more than 2\\^63"):
            pprof(weighted_stacks(larger, []))


@pytest.mark.parametrize("metric", ["time", "blocks", "bytes_sent"])
def test_folded_stacks(metric: str) -> None:
    text = folded(weighted_stacks(view(), [metric]))
    assert text.isascii() and "\x1b" not in text
    stacks = [line.rpartition(" ") for line in text.splitlines()]
    assert sum(int(weight) for _, _, weight in stacks) == round(total(metric))
    named = [stack.split(";") for stack, _, _ in stacks]
    assert len({tuple(names) for names in named}) == len(named)
    assert {names[0] for names in named} <= {"main", "MPI_Init"}
    evil = 'a:b?c?[31m "</script>?? 7'
    assert ["main", evil, "f [_Z1fd]", "MPI_Allreduce"] in named


def test_speedscope() -> None:
    stacks = weighted_stacks(view(), ["time", "bytes_sent"], ["rank 0", "rank 1", "rank 2"])
    document = json.loads(json.dumps(speedscope(stacks)))
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames, profiles = document["shared"]["frames"], document["profiles"]
    assert frames[2] == {"name": HOSTILE, "file": "x;y.c", "line": 3} and frames[3] == {"name": "f"}
    assert 0 <= document["activeProfileIndex"] < len(profiles) == 6
    for number, profile in enumerate(profiles):
        metric, rank = ("time", "bytes_sent")[number // 3], number % 3
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
        assert (profile["type"], profile["name"]) == ("sampled", f"{metric}, rank {rank}")
        assert profile["unit"] == ("nanoseconds" if metric == "time" else "bytes")
        assert len(profile["samples"]) == len(profile["weights"]) and all(profile["samples"])
        assert all(0 <= frame < len(frames) for sample in profile["samples"] for frame in sample)
        exact = np.nansum(view().values[metric][:, rank]) * (1e9 if metric == "time" else 1)
        assert profile["startValue"] == 0 and profile["endValue"] == sum(profile["weights"]) == round(exact)
    plain = speedscope(weighted_stacks(view(), ["blocks"]))["profiles"][0]
    assert (plain["unit"], plain["name"]) == ("none", "blocks, mean over ranks")


@pytest.mark.parametrize(("metric", "scale"), [("time", 1000), ("blocks", 1)])
def test_chrome_trace_is_nested_by_inclusive_values(metric: str, scale: int) -> None:
    ranks = ["rank 0", "rank 1", "rank 2"]
    document = json.loads(json.dumps(chrome_trace(weighted_stacks(view(), [metric], ranks))))
    assert "not a time line" in document["otherData"]["note"]
    events = [event for event in document["traceEvents"] if event["ph"] == "X"]
    names = [event["args"]["name"] for event in document["traceEvents"] if event["ph"] == "M"]
    assert names == [f"{metric}, {rank}" for rank in ranks]
    for process in range(3):
        exact = round(np.nansum(view().values[metric][:, process]) * (1e9 if metric == "time" else 1))
        here = [event for event in events if event["pid"] == process]
        assert sum(event["args"]["exclusive"] for event in here) == exact
        open_until: list[int] = []
        outermost = 0
        below: dict[int, int] = defaultdict(int)
        for event in here:  # a viewer nests complete events that lie within each other, in the order of their begin
            begin, length = round(event["ts"] * scale), round(event["dur"] * scale)
            assert length == event["args"]["inclusive"]
            while open_until and open_until[-1] <= begin:
                open_until.pop()
            assert not open_until or begin + length <= open_until[-1]
            below[len(open_until)] += length
            outermost += 0 if open_until else length
            open_until.append(begin + length)
        assert outermost == exact and below[0] > below[1] > below[2] > 0
        assert HOSTILE in {event["name"] for event in here}


@needs("llnl-hatchet")
def test_hatchet_reads_what_is_written() -> None:
    import hatchet as llnl_hatchet

    literal = json.loads(json.dumps(hatchet(weighted_stacks(view(), []))))
    frame = llnl_hatchet.GraphFrame.from_literal(literal)
    data = frame.dataframe
    assert len(data) == len(REGION) and len(frame.graph.roots) == 2
    assert set(data["name"]) == {region.display for region in REGIONS}
    for metric in ("time", "blocks", "bytes_sent"):
        exact = total(metric) / (1e9 if metric == "time" else 1)
        assert data[metric].sum() == pytest.approx(exact, rel=1e-12)
        roots = [float(data.loc[root, f"{metric} (inc)"]) for root in frame.graph.roots]
        assert sum(roots) == pytest.approx(exact, rel=1e-12)
    assert data["time"].isna().sum() == 1 and data["comm_size (inc)"].max() == 3
    copy = frame.copy()
    copy.update_inclusive_columns()
    assert np.allclose(copy.dataframe["blocks (inc)"], data["blocks (inc)"])


@needs("llnl-hatchet")
def test_hatchet_takes_no_bottomless_tree_and_no_metric_called_name() -> None:
    import hatchet as llnl_hatchet

    deep = CallTree(REGIONS, np.zeros(500, dtype=np.int64), np.arange(-1, 499))
    with pytest.raises(ModelingError, match="500 levels"):
        hatchet(weighted_stacks(TreeView("x", deep, METRICS, {"blocks": np.ones((500, 1))}), []))
    named = TreeView("x", CallTree(REGIONS, REGION, PARENT), {"name": Metric("name")}, {"name": np.ones((8, 1))})
    data = llnl_hatchet.GraphFrame.from_literal(hatchet(weighted_stacks(named, []))).dataframe
    assert data["metric name"].sum() == 8 and "main" in set(data["name"])


def decoded(content: bytes) -> Any:
    """Decode a profile with the used messages of proto/profile.proto."""
    require("protobuf")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    one, many, integer, text, message = 1, 3, 3, 9, 11
    fields: dict[str, list[tuple[str, int, int, int, str]]] = {
        "ValueType": [("type", 1, one, integer, ""), ("unit", 2, one, integer, "")],
        "Sample": [("location_id", 1, many, 4, ""), ("value", 2, many, integer, "")],
        "Line": [("function_id", 1, one, 4, ""), ("line", 2, one, integer, "")],
        "Location": [("id", 1, one, 4, ""), ("line", 4, many, message, "Line")],
        "Function": [(name, number, one, integer, "") for number, name in enumerate(("id", "name"), 1)]
        + [
            ("system_name", 3, one, integer, ""),
            ("filename", 4, one, integer, ""),
            ("start_line", 5, one, integer, ""),
        ],
        "Profile": [
            ("sample_type", 1, many, message, "ValueType"),
            ("sample", 2, many, message, "Sample"),
            ("location", 4, many, message, "Location"),
            ("function", 5, many, message, "Function"),
            ("string_table", 6, many, text, ""),
            ("comment", 13, many, integer, ""),
            ("default_sample_type", 14, one, integer, ""),
        ],
    }
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="perftools", syntax="proto3")
    for kind, entries in fields.items():
        described = file.message_type.add(name=kind)
        for name, number, label, form, of in entries:
            described.field.add(
                name=name, number=number, label=label, type=form, type_name=f".perftools.{of}" if of else None
            )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("perftools.Profile")).FromString(
        gzip.decompress(content)
    )


def test_pprof_is_what_protobuf_decodes() -> None:
    content = pprof(weighted_stacks(view(), ["time", "blocks", "bytes_sent"]))
    assert content == pprof(weighted_stacks(view(), ["time", "blocks", "bytes_sent"]))
    profile = decoded(content)
    strings = profile.string_table
    assert strings[0] == ""
    types = [(strings[entry.type], strings[entry.unit]) for entry in profile.sample_type]
    assert types == [("time", "nanoseconds"), ("blocks", "count"), ("bytes_sent", "bytes")]
    assert strings[profile.default_sample_type] == "time"
    for column, (metric, _) in enumerate(types):
        assert sum(sample.value[column] for sample in profile.sample) == round(total(metric))
    functions = {entry.id: entry for entry in profile.function}
    locations = {entry.id: functions[entry.line[0].function_id] for entry in profile.location}
    assert 0 not in locations and len(locations) == len(REGIONS)
    stacks = [[strings[locations[number].name] for number in sample.location_id] for sample in profile.sample]
    evil = HOSTILE.replace("\ud800", "?")  # half a character is no UTF-8
    assert ["MPI_Allreduce", "f", evil, "main"] in stacks
    assert {stack[-1] for stack in stacks} == {"main", "MPI_Init"}
    assert strings[functions[3].filename] == "x;y.c" and functions[3].start_line == 3


@pytest.mark.parametrize("bad", [-1.0, np.inf])
def test_what_is_no_weight(bad: float) -> None:
    run = view()
    run.values["time"][3, 0] = bad
    with pytest.raises(ModelingError, match="an impossible weight of a stack"):
        chrome_trace(weighted_stacks(run, ["time"], ["rank 0", "rank 1", "rank 2"]))


def test_metrics_that_cannot_be_stacked() -> None:
    with pytest.raises(ModelingError, match="comm_size does not add up"):
        folded(weighted_stacks(view(), ["comm_size"]))
    with pytest.raises(ModelingError, match="has no metric 'flops'"):
        weighted_stacks(view(), ["flops"])
    nothing = TreeView("x", view().tree, METRICS, {"time": np.zeros((8, 2))})
    with pytest.raises(ModelingError, match="x: every metric is 0 at all call paths"):
        weighted_stacks(nothing, [])
    with pytest.raises(ModelingError, match="x: every metric is 0"):
        weighted_stacks(TreeView("x", CallTree((), REGION[:0], REGION[:0]), METRICS, {}), [])
