# SPDX-License-Identifier: Apache-2.0
"""A metric is one line: added to metrics.def, it is in the runtime, in profiles and in what Quipu knows of metrics."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
from quipu.agent.profile.reader import read_profile
from quipu.modeling.experiment import Metric
from quipu.modeling.metrics import METRICS, WEIGHTED

SOURCES = Path(__file__).parents[2]
LINE = 'QUIPU_METRIC(CACHE_MISSES, "cache_misses", "1", "cost", "sum", "lines that were not in the cache")\n'
PROGRAM = """#include "quipu.h"
/* As the pass writes them: the effort of a visit, and of each time that a counter says. */
static const int64_t weights[2][QUIPU_WEIGHTED] = {{1, 2}, {3, 40, [QUIPU_COLUMN_BYTES_STORED] = 8}};
static struct quipu_region work = {.name = "work", .kind = QUIPU_USER, .weights = weights[0], .counters = 1};
int main(void) {
    struct quipu_frame *frame = quipu_enter(&work);
    frame->counters[0] += 5;
    quipu_add(quipu_here(), QUIPU_CACHE_MISSES, 42);
    quipu_exit(frame);
    return 0;
}
"""


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """Return a copy of the sources whose table has one line more, before all that the pass counts."""
    runtime = tmp_path / "agent" / "runtime"
    shutil.copytree(SOURCES / "agent" / "runtime", runtime)
    (tmp_path / "modeling").mkdir()
    shutil.copy(SOURCES / "modeling" / "metrics.py", tmp_path / "modeling")
    table = (runtime / "metrics.def").read_text(encoding="utf-8")
    first = table.index("QUIPU_WEIGHTED_METRIC(BLOCKS")
    (runtime / "metrics.def").write_text(table[:first] + LINE + table[first:], encoding="utf-8")
    return tmp_path


def known(folder: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("quipu.modeling.metrics_of_copy", folder / "modeling" / "metrics.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_metric_is_one_line(changed: Path) -> None:
    runtime = changed / "agent" / "runtime"
    options = ["-O0", "-fPIC", "-shared", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden"]
    library = ["clang++-19", "-std=c++17", *options, "-ftls-model=initial-exec", '-DQUIPU_VERSION="changed"']
    subprocess.run([*library, *sorted(runtime.glob("*.cpp")), "-o", changed / "libquipu.so"], check=True)
    (changed / "program.c").write_text(PROGRAM, encoding="utf-8")
    subprocess.run(["clang-19", f"-I{runtime}", "program.c", "./libquipu.so", "-o", "program"], cwd=changed, check=True)
    raw = changed / "raw"
    raw.mkdir()
    subprocess.run(["./program"], cwd=changed, env={**os.environ, "QUIPU_DIR": str(raw)}, check=True)
    (path,) = raw.glob("profile-*.quipu")
    profile = read_profile(path)
    assert not profile.problems
    work = int(profile.region.tolist().index(next(n for n, region in profile.regions.items() if region.name == "work")))
    counted = {name: int(values[work]) for name, values in profile.values.items() if name != "time"}
    assert counted["cache_misses"] == 42
    assert (counted["visits"], counted["blocks"], counted["instructions"]) == (1, 1 + 5 * 3, 2 + 5 * 40)
    assert (counted["bytes_stored"], counted["bytes_sent"]) == (5 * 8, 0)

    added = Metric("cache_misses", "1", "cost", "sum", "lines that were not in the cache")
    assert added in profile.metrics
    copy = known(changed)
    assert {**METRICS, "cache_misses": added} == copy.METRICS
    assert [metric for metric in profile.metrics if metric.name in copy.METRICS] == list(copy.METRICS.values())
    assert copy.WEIGHTED == WEIGHTED
