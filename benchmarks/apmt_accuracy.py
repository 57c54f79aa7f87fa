# SPDX-License-Identifier: Apache-2.0
"""Measure the accuracy of kernel models from few profiles, compared with other models.

    make bench-apmt_accuracy ARGS="--part strong"
    python benchmarks/apmt_accuracy.py --folder DIR      # keeps finished runs in DIR, and continues

Cases of each program:

- strong: runs with 4, 8 and 16 simulated ranks predict one problem on 64 and 128 ranks. The simulation (SMPI) computes
  the time as effort × rate (`--compute effort`), so it is the same in every run and contains no effects of caches. With
  `--measured`, the time of computation is measured, and varies between runs. The models of quipu use the time of a
  message between two ranks of the simulated network (`quipu machine --network`).
- larger: three small problems predict a problem that is 8 times larger than the largest of them. All run natively on
  one rank. The models of quipu also use counted reuse distances of the small problems, and the description of the
  machine (`quipu machine`).
- beyond: as larger, but the data of the predicted problem are twice as large as the last-level cache.

Numbers in the last line:

- quipu (kernels), paper (apmt_paper.py), analytical, empirical (apmt_comparators.py), extrap (Extra-P 4.2.5, sum over
  call paths): relative error of the time of the program without the start and the end of MPI, mean over the points of a
  case. mean: mean over the cases of a program.
- scatter: (upper - lower quartile) / lower quartile of the repetitions of the predicted problem. The lower quartile is
  the time that is predicted.
- below_all: number of cases in which quipu has the smallest error. programs_below_all: number of programs for which
  quipu has the smallest mean.

jacobi_py is not simulated, because SMPI cannot run Python.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from apmt_comparators import fit_analytical, fit_empirical
from apmt_paper import fit_paper
from apmt_runs import PROGRAMS, Program, SimulatedAs, description, larger, simulated_description, strong
from modeling_extrap import interpreter, model_with_extrap
from modeling_sets import Floats
from quipu.agent.merge.experiment import load_experiment
from quipu.modeling.experiment import Experiment
from quipu.modeling.kernels.model import model_program
from quipu.modeling.machine import Machine
from simulated_time import real_time, totals

MODELERS = ("quipu", "paper", "analytical", "empirical", "extrap")


@dataclass(frozen=True, eq=False)
class Question:
    """The input of Extra-P: values (N, C, R) of points (C, m), to be predicted at targets (T, m)."""

    name: str
    parameters: tuple[str, ...]
    points: Floats
    values: Floats
    targets: Floats


def extrap_total(few: Experiment, many: Experiment) -> list[float]:
    """Return the sum over call paths of Extra-P's predictions of their time."""
    inside = ~few.tree.start_and_end
    values = np.nan_to_num(few.values["time"][inside])
    varying = [at for at in range(len(few.parameters)) if np.unique(few.points[:, at]).size > 1]
    asked = Question(
        few.name,
        tuple(few.parameters[at] for at in varying),
        few.points[:, varying],
        values[values.any(axis=(1, 2))],
        many.points[:, varying],
    )
    answer = model_with_extrap([asked], interpreter())[few.name]  # type: ignore[list-item]
    return np.nansum(answer.predictions, axis=0).tolist()


def errors(few_folder: Path, many_folder: Path, with_extrap: bool, machine: Machine | None = None) -> dict[str, float]:
    """Return the mean relative error of every modeler. machine: the machine description for Quipu."""
    few, many = load_experiment(few_folder), load_experiment(many_folder)
    times = np.array(list(totals(few).values()))
    column = {name: few.points[:, at] for at, name in enumerate(few.parameters)}
    sizes = column.get("D", np.ones(times.size))
    analytical = fit_analytical(column["p"], sizes, times)
    empirical = fit_empirical(column["p"], sizes, times)
    clock = machine.clock if machine is not None else None
    model, paper = model_program(few, machine, clock), fit_paper(few)
    others = extrap_total(few, many) if with_extrap else []
    found: dict[str, list[float]] = {name: [] for name in MODELERS}
    for number, (place, true) in enumerate(totals(many).items()):
        point = dict(zip(many.parameters, map(float, place), strict=True))
        predicted = {"quipu": model.at(point).total.value, "paper": paper.at(point)}
        predicted["analytical"] = analytical.at(point["p"], point.get("D", 1.0))
        predicted["empirical"] = empirical.at(point["p"], point.get("D", 1.0))
        if others:
            predicted["extrap"] = others[number]
        for name, value in predicted.items():
            found[name].append(abs(value / true - 1))
        print(f"  {point}: {true:.4g} s;", {name: f"{value / true - 1:+.1%}" for name, value in predicted.items()})
    return {name: float(np.mean(values)) for name, values in found.items() if values}


def scatter(folder: Path) -> float:
    """Return the difference of the quartiles of the total time over repetitions, relative to the lower quartile."""
    many = load_experiment(folder)
    low, high = np.nanquantile(np.nansum(many.values["time"][~many.tree.start_and_end], axis=0)[0], (0.25, 0.75))
    return float(high / low - 1)


def cases(program: Program, folder: Path, parts: list[str], measured: bool, with_extrap: bool) -> dict[str, Any]:
    """Return the errors of one program in every case."""
    result = {}
    if "strong" in parts and program.total:
        how = SimulatedAs("measured" if measured else "effort")
        print(f"{program.name}, strong scaling", flush=True)
        result["strong"] = errors(*strong(program, folder, how), with_extrap, simulated_description(folder))
    for name, sizes in (("larger", program.larger), ("beyond", program.beyond)):
        if name in parts:
            variables, before = real_time(folder)
            print(f"{program.name}, {name}", flush=True)
            few, many = larger(program, sizes, name, folder, before.split(), variables)
            result[name] = errors(few, many, with_extrap, description(folder)) | {"scatter": scatter(many)}
    return result


def mean_errors(found: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the mean over cases of each modeler that has an error in all of them."""
    return {
        name: float(np.mean([case[name] for case in found])) for name in MODELERS if all(name in case for case in found)
    }


def is_best(found: dict[str, float]) -> bool:
    """Return whether no other modeler has a smaller error."""
    return found["quipu"] <= min(found[name] for name in MODELERS[1:] if name in found)


PARTS = ("strong", "larger", "beyond")


def main() -> None:
    """Measure, model, and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="keeps programs and runs; runs that are there are not repeated")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this case")
    parser.add_argument("--program", action="append", choices=[one.name for one in PROGRAMS], help="only this one")
    parser.add_argument("--measured", action="store_true", help="simulated ranks compute as fast as this machine")
    parser.add_argument("--no-extrap", action="store_true", help="without Extra-P, which is installed from PyPI")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        programs = {
            one.name: cases(one, folder, options.part or list(PARTS), options.measured, not options.no_extrap)
            for one in PROGRAMS
            if one.name in (options.program or [program.name for program in PROGRAMS])
        }
    every = [case for found in programs.values() for case in found.values()]
    means = {name: mean_errors(list(found.values())) for name, found in programs.items()}
    below = {
        "below_all": sum(map(is_best, every)),
        "cases": len(every),
        "programs_below_all": sum(map(is_best, means.values())),
    }
    whole = {name: found | {"mean": means[name]} for name, found in programs.items()}
    print(json.dumps({**mean_errors(every), **below, "programs": whole}))


if __name__ == "__main__":
    main()
