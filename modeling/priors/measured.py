# SPDX-License-Identifier: Apache-2.0
"""Prepare the values of call paths for fits of priors, and fit them at the measured configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..experiment import Experiment, FloatArray
from ..pmnf.data.noise import Repetitions, combine
from ..pmnf.model import Model
from ..pmnf.options import DEFAULT, Options
from .fit import fit_where
from .prior import Prior


def centred(values: FloatArray, options: Options) -> Repetitions:
    """Return values (N, C, R) combined over repetitions; 0 if not measured."""
    repetitions = combine(np.where(np.isinf(values), np.nan, values), options.aggregation)
    return replace(repetitions, centre=np.nan_to_num(repetitions.centre))


def one_by_one(values: FloatArray, options: Options) -> FloatArray | None:
    """Return values (N, C, R) as `singles` of fits; None if the options combine repetitions in another way."""
    return np.where(np.isinf(values), np.nan, values) if options.aggregation == DEFAULT.aggregation else None


def fit_measured(
    experiment: Experiment,
    repetitions: Repetitions,
    choices: Mapping[int, Sequence[Prior]],
    singles: FloatArray | None,
    doubted: bool = False,
) -> dict[int, Model]:
    """Return the best models of call paths, each fitted to the configurations with values above 0.

    doubted: the models contain other priors that are nearly as likely as alternatives.
    """
    where, points = repetitions.centre > 0, experiment.points
    fits = fit_where(choices, experiment.parameters, points, repetitions, where, singles=singles, doubted=doubted)
    return {path: found.model for path, found in fits.items()}
