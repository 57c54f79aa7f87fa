"""Extra-P 4.2.5 from PyPI on planted sets, in an environment of its own because it needs NumPy 1."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from modeling_sets import Exponents, Floats, PlantedSet

VERSION = "4.2.5"
HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE.parent / "build" / f"extrap-{VERSION}"
# One thread each, so that CPU seconds compare.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True, eq=False)
class Answers:
    """What a modeler says about one set: predictions (N,) at the target, leading exponents, CPU seconds."""

    predictions: Floats
    leads: list[list[Exponents]]
    seconds: float


def interpreter() -> Path:
    """Return the Python of an environment with Extra-P; makes one in the build folder if there is none."""
    python = ENVIRONMENT / "bin" / "python"
    if not (ENVIRONMENT / "complete").exists():
        print(f"installing extrap {VERSION} from PyPI", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", f"extrap=={VERSION}"], check=True)
        (ENVIRONMENT / "complete").touch()
    return python


def model_with_extrap(sets: Sequence[PlantedSet], python: Path) -> dict[str, Answers]:
    """Return the answers of Extra-P with its defaults (mean of repetitions) by name of the set."""
    tasks = {
        own.name: {
            "parameters": own.parameters,
            "points": own.points.tolist(),
            "values": own.values.tolist(),
            "target": own.target.tolist(),
        }
        for own in sets
    }
    with tempfile.TemporaryDirectory() as name:
        question, answer = Path(name) / "sets.json", Path(name) / "answers.json"
        question.write_text(json.dumps(tasks))
        subprocess.run(
            [str(python), "-W", "ignore", str(HERE / "modeling_extrap_worker.py"), str(question), str(answer)],
            check=True,
            env={**os.environ, **ONE_THREAD},
        )
        found = json.loads(answer.read_text())
    return {
        key: Answers(
            np.array(own["predictions"]),
            [[(Fraction(i), int(j)) for i, j in leads] for leads in own["leads"]],
            own["seconds"],
        )
        for key, own in found.items()
    }


def arguments_folder() -> Path:
    """Return where the reference sets are unless --data says otherwise: next to the repository."""
    return HERE.parent.parent / "shared" / "reference" / "modeling-speed"
