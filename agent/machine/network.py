# SPDX-License-Identifier: Apache-2.0
"""Measure the network of a machine: latency α and time per byte β of messages and collective operations."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from quipu.modeling.errors import EnvironmentProblem, FormatError, MeasurementError
from quipu.modeling.machine import Network, Timed
from scipy.optimize import nnls

from ..installation import native_file

_TIME_LIMIT = 600.0  # seconds for compiling, and for measuring


def measure(launch: Sequence[str], mpicc: str = "mpicc") -> tuple[Network, ...]:
    """Build the measuring program with `mpicc`, and run it with the launch command `launch`, such as mpirun -n 4.

    Return one Network per operation. Raises EnvironmentProblem if the compiler or the launcher is missing,
    MeasurementError if one of them fails or takes too long, FormatError if the program prints other lines than
    expected.
    """
    source = native_file("machine/network.c")
    with tempfile.TemporaryDirectory(prefix="quipu-network-") as folder:
        program = Path(folder) / "network"
        _run([mpicc, "-O2", str(source), "-o", str(program)], "install an MPI, or name its compiler with --mpicc")
        printed = _run([*launch, str(program)], "give the launcher and the number of ranks, such as 'mpirun -n 4'")
    return networks_of(printed)


def _run(command: Sequence[str], hint: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIME_LIMIT)
    except OSError as error:
        raise EnvironmentProblem(f"{command[0]} cannot be started: {error.strerror or error}; {hint}") from error
    except subprocess.TimeoutExpired as error:
        raise MeasurementError(f"{command[0]} took longer than {_TIME_LIMIT:.0f} s") from error
    if done.returncode:
        message = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise MeasurementError(f"{command[0]} failed ({done.returncode}): {message[0] if message else 'no message'}")
    return done.stdout


def networks_of(printed: str) -> tuple[Network, ...]:
    """Fit the time α + β·bytes (α, β ≥ 0; seconds) to lines `operation ranks bytes seconds`.

    Return one Network for each operation and number of ranks. The fit minimizes the sum of squared relative errors.
    Raises FormatError for a line in another form.
    """
    rows: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for number, line in enumerate(printed.splitlines(), start=1):
        try:
            operation, count, size, seconds = line.split()
            rows.setdefault((operation, int(count)), []).append((float(size), float(seconds)))
        except ValueError:
            message = f"is not a line with operation, ranks, bytes and seconds: {line!r}"
            raise FormatError("the times of the network", message, number) from None
    found = []
    for (operation, ranks), times in rows.items():
        sizes, seconds = np.array(times).T
        columns = np.stack([np.ones_like(sizes), sizes], axis=1) / seconds[:, None]
        scale = columns.max(axis=0)
        alpha, beta = (nnls(columns / scale, np.ones(seconds.size))[0] / scale).tolist()
        by_size = tuple(Timed(int(size), time) for size, time in sorted(times))
        found.append(Network(operation, ranks, alpha, beta, by_size))
    return tuple(found)
