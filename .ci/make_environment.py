# SPDX-License-Identifier: Apache-2.0
"""Make the virtual environment that the Makefile builds in: python3 .ci/make_environment.py FOLDER."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 - here it is the user's python3 that runs
    sys.exit(f"Quipu needs Python 3.11 or newer, python3 is {sys.version.split()[0]}")
folder = Path(sys.argv[1])
print(f"Making the Python environment {folder} ...", flush=True)
venv.EnvBuilder(with_pip=True, clear=folder.exists()).create(folder)
subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", "scikit-build-core>=1.0"], check=True)
