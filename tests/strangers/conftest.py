# SPDX-License-Identifier: Apache-2.0
"""The writer of profiles is shared with the tests of the agent."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "agent"))
