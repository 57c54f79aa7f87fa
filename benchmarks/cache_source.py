# SPDX-License-Identifier: Apache-2.0
"""Compare counters of the simulated cache with the output of valgrind, and predict times beyond the cache with them.

    make bench-cache_source
    python benchmarks/cache_source.py --folder DIR       # keeps finished runs in DIR, and continues

programs/stream.c sweeps over an array in order, and over the cache lines of the array in random order.

The last line is one JSON object:

- compared: number of functions that have one call path and call nothing but regions. different: number of these
  functions whose self cost differs from the output of callgrind_annotate for the same file, for any event.
- quipu, effort: mean relative error of the predicted time for arrays of 4 and 16 times the last-level cache. The runs
  have arrays of 1/4096 to 2 times the last-level cache. `quipu` uses the counted misses in caches of the sizes that
  `quipu machine` found, and the latencies of the machine. `effort` does not. `functions` contains the errors of each
  function.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from apmt_runs import description, measure
from quipu.agent.archive.read import read_archive
from quipu.agent.counters.attribution import attributed
from quipu.agent.counters.cachegrind import PREFIX, Cachegrind
from quipu.agent.counters.callgrind import read_callgrind
from quipu.agent.merge.experiment import find_runs, load_experiment
from quipu.modeling.kernels.model import model_program
from quipu.modeling.machine import Machine
from quipu.modeling.rate_fit import typical
from simulated_time import real_time, run

FRACTIONS = (1 / 4096, 1 / 16, 1 / 4, 1, 2)
"""Sizes for models, relative to the last-level cache."""
TARGETS = (4, 16)


def annotated(file: Path) -> dict[str, list[int]]:
    """Return the self cost of functions that callgrind_annotate prints, summed over callers."""
    command = ["callgrind_annotate", "--threshold=100", "--show-percs=no", str(file)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    result: dict[str, list[int]] = {}
    for line in printed.splitlines():
        words = line.split()
        costs = [word.replace(",", "").replace(".", "0") for word in words[:9]]
        if len(words) > 9 and all(cost.isdigit() for cost in costs) and ":" in words[9]:
            name = words[9].rpartition(":")[2].split("'")[0]
            before = result.setdefault(name, [0] * 9)
            result[name] = [a + int(b) for a, b in zip(before, costs, strict=True)]
    return result


def exactness(program: Path, folder: Path, runs: Path) -> dict[str, Any]:
    """Compare the cost of call paths with callgrind_annotate, for one file."""
    raw = folder / "raw"
    raw.mkdir(exist_ok=True)
    for old in raw.glob(f"{PREFIX}*"):
        old.unlink()
    shim = raw / "count.sh"
    shim.write_text(Cachegrind().shims(raw)[0])
    shim.chmod(0o755)
    subprocess.run([str(shim), str(program), "512"], check=True, capture_output=True)
    (file,) = raw.glob(f"{PREFIX}*")
    costs = read_callgrind(file)
    tree = read_archive(find_runs(runs)[0].path, values=False).tree
    found, _ = attributed(tree, costs.of.items(), len(costs.events))
    names = [region.name for region in tree.regions]
    calls = {chain[0]: callees for chain, callees in costs.calls.items()}
    said = annotated(file)
    differences = {}
    compared = []
    for path in range(len(tree)):
        name = tree.region_of(path).name
        alone = int((tree.region == tree.region[path]).sum()) == 1
        if not alone or name not in said or any(callee[0] not in names for callee in calls.get(name, ())):
            continue
        compared.append(name)
        if found[path].tolist() != said[name]:
            differences[name] = [found[path].tolist(), said[name]]
    return {"compared": compared, "differences": differences}


def beyond(machine: Machine, program: Path, folder: Path, repetitions: int) -> dict[str, Any]:
    """Return relative errors beyond the last-level cache."""
    last = machine.caches[-1].bytes
    variables, before = real_time(folder)
    few, many = folder / "few.runs", folder / "many.runs"
    for runs, fractions in ((few, FRACTIONS), (many, TARGETS)):
        for fraction in fractions:
            size = round(fraction * last / 1024)
            lines = 16
            while lines * 64 < size * 1024:
                lines *= 2
            command: Sequence[str] = [*before.split(), str(program), str(size)]
            if runs == few:
                options = ["--counters", "cachegrind", "--machine", str(folder / "machine.json")]
                measure(few, {"D": lines}, [str(program), str(size)], folder, 1, options, **variables)
            measure(runs, {"D": lines}, command, folder, repetitions, (), **variables)
    small, large = load_experiment(few), load_experiment(many)
    true = typical(large.values["time"])
    place = {large.tree.key(path): path for path in range(len(large.tree))}
    result: dict[str, Any] = {"functions": {}}
    for name, given in (("quipu", machine), ("effort", None)):
        model = model_program(small, given, clock=machine.clock)
        errors = []
        for at, point in enumerate(large.points.tolist()):
            for kernel in model.at(dict(zip(large.parameters, point, strict=True))).kernels:
                paths = [place[small.tree.key(path)] for path in kernel.kernel.paths]
                seconds = float(true[paths, at].sum())
                if kernel.kernel.name not in ("in_order", "out_of_order"):
                    continue
                error = kernel.total.value / seconds - 1
                errors.append(abs(error))
                result["functions"].setdefault(kernel.kernel.name, {}).setdefault(name, []).append(error)
                print(f"  {name}: {kernel.kernel.name} {point}: {seconds:.4g} s, {error:+.1%}", flush=True)
        result[name] = float(np.mean(errors))
    return result


def main() -> None:
    """Measure, compare, and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="keeps what was run; that is not repeated")
    parser.add_argument("--repetitions", type=int, default=5, help="native runs of each size")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        machine = description(folder)
        source = Path(__file__).resolve().parent / "programs" / "stream.c"
        program = folder / "stream"
        run(["quipu-cc", "-O2", str(source), "-o", str(program)], folder)
        measure(folder / "one.runs", {"D": 8192}, [str(program), "512"], folder)
        exact = exactness(program, folder, folder / "one.runs")
        print(f"  compared {exact['compared']}", flush=True)
        found = beyond(machine, program, folder, options.repetitions)
    print(json.dumps({"different": len(exact["differences"]), "compared": len(exact["compared"]), **found, **exact}))


if __name__ == "__main__":
    main()
