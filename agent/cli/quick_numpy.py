# SPDX-License-Identifier: Apache-2.0
"""Import numpy without the threads of OpenBLAS, its library for linear algebra.

OpenBLAS starts a thread for each processor when it is loaded. This takes more processor time than the import of numpy,
and `quipu run` uses no linear algebra. An environment variable prevents it. The variable is restored after the import,
because the measured program may use OpenBLAS, too.
"""

from __future__ import annotations

import os

_THREADS = "OPENBLAS_NUM_THREADS"


def load_numpy() -> None:
    """Import numpy for the first time, with one thread of OpenBLAS unless the user chose a number."""
    chosen = os.environ.setdefault(_THREADS, "")
    try:
        os.environ[_THREADS] = chosen or "1"
        import numpy  # noqa: F401
    finally:
        if chosen:
            os.environ[_THREADS] = chosen
        else:
            del os.environ[_THREADS]
