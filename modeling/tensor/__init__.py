# SPDX-License-Identifier: Apache-2.0
"""Tensor-completion models of many parameters: low-rank functions on grids of the parameters.

The logarithm of a time is modeled as a sum of R components; each component is a product of one function per mode. The
terms and letters of this folder:

- row: one measurement, or one point to predict. N rows, d columns (one per parameter).
- mode: a parameter, or the product or ratio of two parameters (modes.py).
- knots: the grid of a mode. A cell is the interval between two neighbouring knots.
- factor: (knots, R), the values of the R functions of a mode at its knots; between knots they are linear.
- R: the rank, the number of components.
- MLogQ: the error of a model, the mean of |ln(predicted / measured)|.

Constants are in the file that uses them; docs/design/tensor.md contains the measurements behind them. After a change of
a constant, benchmarks/tensor_accuracy.py, tensor_intervals.py and tensor_combinations.py must give the same figures.
"""

from __future__ import annotations

from .model import TensorModel

__all__ = ["TensorModel"]
