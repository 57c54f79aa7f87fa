# SPDX-License-Identifier: Apache-2.0
"""Models of time under priors from noise-resilient effort (de Morais et al.)."""

from __future__ import annotations

from .choices import time_priors
from .effort_time import fit_time, model_time_and_waiting
from .path_model import PathModel

__all__ = ["PathModel", "fit_time", "model_time_and_waiting", "time_priors"]
