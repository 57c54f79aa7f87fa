# SPDX-License-Identifier: Apache-2.0
"""Propose the hypotheses that Extra-P compares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import EXTRAP_LEAST_PART
from ..criterion.criterion import Candidates
from ..criterion.rules import left_out, smape
from ..data.lines import lines
from ..hypotheses.library import Form, forms
from ..hypotheses.tables import Tables


class ExtraPForms:
    """The rule of Extra-P with Quipu's terms. points: (C, m); values: (N, C); tables: the terms at the points.

    One parameter: ordinary least squares of c0 + c1·term; a hypothesis replaces the constant, or a simpler one, if its
    cross-validated SMAPE is lower. Several parameters: the functions come from the mean of the longest lines along each
    parameter; the form with the lowest SMAPE at fitted points combines them (Calotoiu et al., Fast Multi-Parameter
    Performance Modeling, CLUSTER 2016; Extra-P 4.2.5).
    """

    def __init__(self, points: FloatArray, tables: Tables, values: FloatArray) -> None:
        self.points, self.tables, self.values = points, tables, values
        self.parameters = points.shape[1]

    def propose(self) -> list[Candidates]:
        """Return the forms that combine the functions of all parameters with an effect."""
        functions = np.stack([self._function(parameter) for parameter in range(self.parameters)], axis=1)
        result = []
        for pattern in np.unique(functions >= 0, axis=0):
            paths = np.flatnonzero(((functions >= 0) == pattern).all(axis=1))
            for form in self._forms(np.flatnonzero(pattern).tolist()):
                if len(form) < self.values.shape[1]:
                    specification = np.full((paths.size, len(form), self.parameters), -1, dtype=np.int16)
                    for number, block in enumerate(form):
                        specification[:, number, block] = functions[paths][:, block]
                    result.append(Candidates(paths, specification, True))
        return result

    def _function(self, parameter: int) -> NDArray[np.int16]:
        """Return for each call path the term of a parameter that fits the mean of its lines best; -1 for none."""
        found = lines(self.points, parameter, most=len(self.points))
        best = np.full(len(self.values), -1, dtype=np.int16)
        if not found:
            return best
        line, positions = found[0], self.points[:, parameter]
        alike = [each for each in found if np.array_equal(positions[each], positions[line])]
        values = np.mean([self.values[:, each] for each in alike], axis=0)
        weights = np.ones_like(values)
        ones = np.ones((len(values), 1, line.size))
        error = smape(values, left_out(ones, values, weights))
        for number, term in enumerate(self.tables.terms[parameter]):
            if term.exponent < 0:
                continue
            column = np.broadcast_to(self.tables.columns[parameter][number, line], ones.shape)
            columns = np.concatenate([ones, column], axis=1)
            of_term = smape(values, left_out(columns, values, weights))
            part = self._part(columns, values)
            better = (of_term < error) & (part >= EXTRAP_LEAST_PART)
            best[better], error = number, np.where(better, of_term, error)
        return best

    @staticmethod
    def _part(columns: FloatArray, values: FloatArray) -> FloatArray:
        """Return the largest part of c1·term in the values of a line, (N,)."""
        centred = columns[:, 1] - columns[:, 1].mean(axis=1, keepdims=True)
        square = (centred**2).sum(axis=1)
        slope = (centred * values).sum(axis=1) / np.where(square > 0, square, 1.0)
        size = np.where(values != 0, np.abs(values), np.inf)
        result: FloatArray = (np.abs(slope[:, None] * columns[:, 1]) / size).max(axis=1)
        return result

    @staticmethod
    def _forms(active: list[int]) -> list[Form]:
        """Return the combinations that Extra-P tries: all up to three parameters, beyond that only Σ and Π."""
        if not active:
            return [()]
        if len(active) > 3:
            return [tuple((parameter,) for parameter in active), (tuple(active),)]
        every = [form for form in forms(len(active)) if {p for block in form for p in block} == set(range(len(active)))]
        return [tuple(tuple(active[p] for p in block) for block in form) for form in every]
