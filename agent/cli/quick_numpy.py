# SPDX-License-Identifier: Apache-2.0
"""Load numpy without the threads of its linear algebra.

OpenBLAS starts a thread for each processor when it is loaded, which takes more processor time than all of numpy. A run
uses no linear algebra. The variable is taken back: the measured program may be one that does.
"""

from __future__ import annotations

import os

_THREADS = "OPENBLAS_NUM_THREADS"

if _THREADS in os.environ:
    import numpy
else:
    os.environ[_THREADS] = "1"
    try:
        import numpy  # noqa: F401
    finally:
        del os.environ[_THREADS]
