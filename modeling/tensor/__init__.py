"""Tensor-completion models of many parameters: low-rank functions on grids of the parameters."""

from __future__ import annotations

from .model import TensorModel

__all__ = ["TensorModel"]
