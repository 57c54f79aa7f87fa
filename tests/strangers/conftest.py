# SPDX-License-Identifier: Apache-2.0
"""Make the writer of profiles of the tests of the agent importable."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
