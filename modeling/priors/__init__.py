"""Models of time under priors from noise-resilient effort (de Morais et al.)."""

from __future__ import annotations

from .effort_time import PathModel, model_time

__all__ = ["PathModel", "model_time"]
