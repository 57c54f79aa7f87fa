# SPDX-License-Identifier: Apache-2.0
"""Load numpy without the threads of its linear algebra.

When OpenBLAS is loaded, it starts a thread for each processor, which takes more processor time than importing numpy.
`quipu run` uses no linear algebra. The environment variable is restored, because the measured program may use OpenBLAS.
"""

from __future__ import annotations

import os

_THREADS = "OPENBLAS_NUM_THREADS"


def load_numpy() -> None:
    """Import numpy for the first time, with one thread unless the user chose a number."""
    chosen = os.environ.setdefault(_THREADS, "")
    try:
        os.environ[_THREADS] = chosen or "1"
        import numpy  # noqa: F401
    finally:
        if chosen:
            os.environ[_THREADS] = chosen
        else:
            del os.environ[_THREADS]
