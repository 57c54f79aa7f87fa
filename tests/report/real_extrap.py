# SPDX-License-Identifier: Apache-2.0
"""Run Extra-P in a separate environment, because it needs numpy 1 and Qt."""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from patience import PATIENCE
from peers import installed_on_use

VERSION = "4.2.5"
_HOME = Path(__file__).parents[2] / "build" / f"extrap-{VERSION}"

_READ = """
import json, sys
from pathlib import Path
from extrap.fileio.file_reader.cube_file_reader2 import CubeFileReader2
from extrap.fileio.file_reader.json_file_reader import JsonFileReader
from extrap.fileio.file_reader.talpas_file_reader import TalpasFileReader
from extrap.fileio.file_reader.text_file_reader import TextFileReader
from extrap.fileio.experiment_io import read_experiment, write_experiment

kind, path, saved, keep = sys.argv[1:]
readers = {"json": JsonFileReader, "talpas": TalpasFileReader, "text": TextFileReader, "cube": CubeFileReader2}
if kind == "experiment":
    experiment = read_experiment(path)
else:
    reader = readers[kind]()
    reader.keep_values = keep == "keep"
    experiment = reader.read_experiment(Path(path))
if saved:
    write_experiment(experiment, saved)
rows = [
    [str(callpath), str(metric), list(m.coordinate.as_tuple()), float(m.mean), float(m.minimum), float(m.maximum),
     m.repetitions]
    for (callpath, metric), measurements in experiment.measurements.items() for m in measurements
]
print(json.dumps({"parameters": [str(p) for p in experiment.parameters], "rows": rows}))
"""


def interpreter() -> Path:
    """Return a Python that has Extra-P; makes an environment in the build folder (of the benchmarks, too) if needed."""
    if importlib.util.find_spec("extrap") is not None:
        return Path(sys.executable)
    python = _HOME / "bin" / "python"
    _HOME.parent.mkdir(exist_ok=True)
    with _HOME.with_name(f"{_HOME.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other workers of pytest-xdist wait until it is there
        if not (_HOME / "complete").exists():
            make = [sys.executable, "-m", "venv", "--clear", "--without-pip", str(_HOME)]
            subprocess.run(make, check=True, timeout=PATIENCE)
            pip = [sys.executable, "-m", "pip", "--python", str(python)]
            # Most of Qt is never imported, so it is not compiled at installation.
            install = ["install", "--quiet", "--no-compile", f"extrap=={VERSION}"]
            subprocess.run([*pip, *install], check=True, timeout=PATIENCE)
            (_HOME / "complete").touch()
    return python


def read(kind: str, path: Path, saved: Path | None = None, keep: bool = True) -> dict[str, Any]:
    """Return what Extra-P reads from a file: parameters, and rows of call path, metric, point and statistics.

    saved: where Extra-P is to write what it read as its own experiment, with the single values if `keep`.
    """
    arguments = [kind, str(path), "" if saved is None else str(saved), "keep" if keep else "means"]
    done = subprocess.run(
        [installed_on_use("Extra-P", interpreter), "-W", "ignore", "-c", _READ, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": ""},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
