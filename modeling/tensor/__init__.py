# SPDX-License-Identifier: Apache-2.0
"""Tensor-completion models of many parameters: low-rank functions on grids of the parameters.

Constants are in the file that uses them; docs/design/tensor.md contains the measurements behind them. After a change of
a constant, benchmarks/tensor_accuracy.py, tensor_intervals.py and tensor_combinations.py must give the same figures.
"""

from __future__ import annotations

from .model import TensorModel

__all__ = ["TensorModel"]
