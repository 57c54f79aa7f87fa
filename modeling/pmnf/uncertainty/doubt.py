# SPDX-License-Identifier: Apache-2.0
"""Notes for the user on the uncertainty of a model: misfit, other likely forms, parameters of undetermined effect.

Shapes: N call paths or models, C points, m parameters, P hypotheses per call path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ...catalogue import CHANGE_TOGETHER, COUNTS_MISSED, COUNTS_VARY, ONE_VALUE, TIMES_MISSED, TIMES_SCATTER
from ...experiment import FloatArray
from ..calibration import FAR_OFF, LARGE_SCATTER, MISFIT, MISFIT_SAID, SAID_OFF, SPLIT_APART, SPLIT_LEAST
from ..data.noise import Repetitions
from ..model import Alternative, Model, text
from .covariance import open_parameters

Notes = list[tuple[str, ...]]


def open_notes(names: Sequence[str], points: FloatArray, only: str | None = None) -> tuple[str, ...]:
    """Return notes on the parameters whose effects the points (C, m) do not determine; () if there are none.

    These are parameters with one value, and parameters that only change together. only: return nothing but the note
    that this parameter has one value.
    """
    several = points.max(axis=0, initial=0.0) > points.min(axis=0, initial=np.inf)
    unknown = open_parameters(points)
    alone = [names[index] for index in unknown if not several[index]]
    together = [names[index] for index in unknown if several[index]]
    notes = [ONE_VALUE(name=name) for name in alone if only in (None, name)]
    if together and only is None:
        notes.append(CHANGE_TOGETHER(names=", ".join(together)))
    return tuple(notes)


def largest_misfit(noise: FloatArray) -> FloatArray:
    """Return the root mean square relative error (N,) above which a model misses the values.

    noise: (N,) relative standard deviation of the values, NaN if it is not known; then the limit is infinite.
    """
    return np.where(np.isnan(noise), np.inf, np.maximum(MISFIT * noise, MISFIT_SAID))


def scatter_notes(repetitions: Repetitions, residual: FloatArray, effort: bool) -> Notes:
    """Return for each call path the notes that its repetitions differ, and that its model misses the values.

    residual: (N,) root mean square relative errors of the models. effort: the values are counts, which should not
    differ at all; no residual of them is noted.
    """
    notes: Notes = [()] * len(repetitions.scatter)
    for path in np.flatnonzero(repetitions.differ if effort else repetitions.scatter > LARGE_SCATTER).tolist():
        many = 100 * float(repetitions.scatter[path])
        if effort:
            notes[path] = (COUNTS_VARY(percent=many),)
        else:
            notes[path] = (TIMES_SCATTER(percent=many),)
    noise = repetitions.known_noise
    missed = np.isfinite(residual) & (residual > largest_misfit(noise)) & (not effort)
    for path in np.flatnonzero(missed).tolist():
        notes[path] += (TIMES_MISSED(percent=100 * residual[path], noise=100 * noise[path]),)
    return notes


def far_off(model: Model) -> Model:
    """Return a model of counts with a note if it misses the counts, and without such a note if it does not.

    A previous note of this kind is replaced, because it may come from the model from which this one was made. The limit
    is FAR_OFF for counts whose repetitions differ, because these depend on random data; otherwise SAID_OFF.
    """
    if model.quality is None:
        return model
    notes = COUNTS_MISSED.without(model.notes)
    by = model.quality.rms_relative
    if by > (FAR_OFF if COUNTS_VARY.is_in(notes) else SAID_OFF):
        notes += (COUNTS_MISSED(percent=100 * by),)
    return model if notes == model.notes else replace(model, notes=notes)


def split_notes(others: Callable[[int], list[Alternative]], shares: FloatArray, far: FloatArray) -> Notes:
    """Return for each model a note on the most likely hypothesis with a clearly different prediction.

    There is a note only if such a hypothesis has at least SPLIT_LEAST times the weight of the model.
    others: returns the other hypotheses of a call path; shares: (N, P) posterior weights, the model first; far: (N, P)
    predictions of these hypotheses one step beyond the measured values.
    """
    notes: Notes = [()] * len(shares)
    if shares.shape[1] < 2:
        return notes
    ratio = np.abs(far[:, 1:] - far[:, :1]) > SPLIT_APART * np.abs(far[:, :1])
    rival = np.where(ratio, shares[:, 1:], 0.0)
    place = rival.argmax(axis=1)
    most = rival[np.arange(len(rival)), place]
    split = (most > 0) & (most >= SPLIT_LEAST * shares[:, 0])
    for path in np.flatnonzero(split).tolist():
        number = int((shares[path, 1 : place[path] + 2] > 0).sum()) - 1
        known = others(path)
        other = known[number]
        form = text.plain(other.constant, other.terms)
        weight = 1.0 - sum(alternative.weight for alternative in known)
        notes[path] = (
            f"weight {100 * weight:.0f} %, and {100 * other.weight:.0f} % for {form}: predictions follow the first",
        )
    return notes
