# SPDX-License-Identifier: Apache-2.0
"""Run Extra-P 4.2.5 from PyPI on planted sets, in a separate environment because it needs NumPy 1."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from modeling_layout_sets import LayoutSet
from modeling_sets import Exponents, Floats, PlantedSet

VERSION = "4.2.5"
HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE.parent / "build" / f"extrap-{VERSION}"
# One thread each, so that CPU seconds are comparable.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers of a modeler for one set: predictions (N, T) at its targets, leading exponents, CPU seconds."""

    predictions: Floats
    leads: list[list[Exponents]]
    seconds: float


def interpreter() -> Path:
    """Return the Python of an environment with Extra-P; create it in the build folder if necessary."""
    python = ENVIRONMENT / "bin" / "python"
    if not (ENVIRONMENT / "complete").exists():
        print(f"installing extrap {VERSION} from PyPI", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", f"extrap=={VERSION}"], check=True)
        (ENVIRONMENT / "complete").touch()
    return python


def model_with_extrap(
    sets: Sequence[PlantedSet | LayoutSet], python: Path, kept: Path | None = None
) -> dict[str, Answers]:
    """Return the answers of Extra-P with its defaults (mean of repetitions) by name of the set.

    kept: a folder of answers, to continue after an interruption; each file is named after its question.
    """
    tasks = {
        own.name: {
            "parameters": own.parameters,
            "points": own.points.tolist(),
            "values": own.values.tolist(),
            "targets": own.targets.tolist(),
        }
        for own in sets
    }
    text = json.dumps(tasks)
    known = kept / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json" if kept is not None else None
    found = json.loads(known.read_text()) if known is not None and known.exists() else ask(text, python)
    if known is not None and not known.exists():
        known.parent.mkdir(parents=True, exist_ok=True)
        part = known.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(found))
        part.replace(known)
    return {
        key: Answers(
            np.array(own["predictions"]),
            [[(Fraction(i), int(j)) for i, j in leads] for leads in own["leads"]],
            own["seconds"],
        )
        for key, own in found.items()
    }


def ask(tasks: str, python: Path) -> dict[str, Any]:
    """Return the answers of Extra-P to sets as JSON text, by name; see modeling_extrap_worker.py."""
    with tempfile.TemporaryDirectory() as name:
        question, answer = Path(name) / "sets.json", Path(name) / "answers.json"
        question.write_text(tasks)
        subprocess.run(
            [str(python), "-W", "ignore", str(HERE / "modeling_extrap_worker.py"), str(question), str(answer)],
            check=True,
            env={**os.environ, **ONE_THREAD},
        )
        found: dict[str, Any] = json.loads(answer.read_text())
    return found
