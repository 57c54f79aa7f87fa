# SPDX-License-Identifier: Apache-2.0
"""Model counts by functions of the share of one process: n/p, n²/p or n³/p.

A process that sorts, searches or builds a tree of n/p items does n/p · log2(n/p) steps, which is n/p · log2(n) - n/p ·
log2(p). The search for sums of functions of n and p rarely finds this difference. With the share as the only parameter,
the function is found like the function of a single process.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from ...experiment import FloatArray
from ..calibration import SHARE_DIMENSIONS, SHARE_MISSED, SHARE_VALUES
from ..criterion.deviating import rises_beyond
from ..data.lines import lines
from ..data.preparation import ranges
from ..model import Alternative, Factor, Model, Term, collect
from ..uncertainty.covariance import given_the_others
from ..uncertainty.doubt import open_notes
from .share_bounds import may_explain, may_explain_alone, to_beat
from .unexplained import Fit, missed, unexplained

_Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Share:
    """The share of one process: whole^dimensions / parts, by parameter numbers.

    alone: counts only depend on the share; otherwise also on the number of parts.
    """

    whole: int
    parts: int
    dimensions: int
    alone: bool

    def of(self, points: FloatArray) -> FloatArray:
        """Return the shares (C,) at points (C, m)."""
        return np.asarray(points[:, self.whole] ** float(self.dimensions) / points[:, self.parts], dtype=np.float64)

    def sizes(self, points: FloatArray) -> FloatArray:
        """Return points (C, m) with the share instead of the whole. Parts without another effect become 1."""
        result = points.copy()
        result[:, self.whole] = self.of(points)
        if self.alone:
            result[:, self.parts] = 1.0
        return result

    def may_explain(
        self, points: FloatArray, values: FloatArray, left: FloatArray, former: NDArray[np.int64]
    ) -> _Flags:
        """Return which counts (N, C) functions of the share may explain better than models.

        The models have `former` (N,) coefficients and relative residuals `left` (N,). The counts grow with the whole,
        and fall with the number of parts.
        """
        result = (values > 0).all(axis=1)
        fall = np.zeros(len(values), dtype=bool)
        for line in lines(points, self.whole, least=2):
            result &= values[:, line[-1]] > values[:, line[0]]
        for line in lines(points, self.parts, least=2):
            fall |= (np.diff(values[:, line], axis=1) < 0).any(axis=1)
        rows = np.flatnonzero(result & fall)
        found = np.zeros(len(values), dtype=bool)
        if not rows.size:
            return found
        share, known = self.of(points), (values[rows], left[rows], former[rows])
        if self.alone:
            others = set(range(points.shape[1])) - {self.whole, self.parts}
            levels = [points[:, i] == x for i in others for x in np.unique(points[:, i])[1:].tolist()]
            found[rows] = may_explain_alone(share, np.reshape(levels, (-1, len(points))).astype(np.float64), *known)
        else:
            found[rows] = may_explain(share, points[:, self.parts], *known)
        return found

    def expand(self, model: Model, names: Sequence[str], measured: tuple[tuple[float, float], ...]) -> Model:
        """Return a function of the share as a function of all parameters.

        In `model`, the parameter of the whole stands for the share. x^i · log2(x)^j of the share x = n^d/p is n^(d·i) ·
        p^-i · (d·log2(n) - log2(p))^j.
        """
        constant, terms, parts = self._sum(model, names)
        places = {term.shape: place for place, term in enumerate(terms, 1)}
        change = np.zeros((1 + len(terms), 1 + len(parts)))  # coefficients of all parameters from those of the share
        change[0, 0] = 1.0
        for column, own in enumerate(parts, 1):
            for term in own:
                if term.shape in places:
                    change[places[term.shape], column] += term.coefficient
        others = []
        for other in model.alternatives:
            own_constant, own_terms, _ = self._sum(other, names)
            others.append(replace(other, constant=own_constant, terms=own_terms))
        return replace(
            model,
            constant=constant,
            terms=terms,
            ranges=measured,
            covariance=self._covariance(model, change),
            alternatives=tuple(others),
        )

    def _covariance(self, model: Model, change: FloatArray) -> tuple[tuple[float, ...], ...]:
        """Return the covariance of a function of the share, as a function of all parameters.

        Its coefficients are `change` (1 + T, 1 + K) times the coefficients of the function of the share. A factor x^e
        of the share is n^(d·e) · p^-e. A deviation e of an exponent of the share is therefore a deviation d·e for n and
        -e for p. Curvature of the share is ignored.
        """
        if not model.covariance:
            return ()
        parameters, (terms, size) = len(model.parameters), change.shape
        # for each parameter of the function of the share: the parameters whose exponents deviate with it, and by which
        # factor
        deviating = {self.whole: {self.whole: float(self.dimensions), self.parts: -1.0}}
        dropped = {self.whole, self.parts} if self.alone else {self.whole}
        deviating |= {own: {own: 1.0} for own in range(parameters) if own not in dropped}
        blocks = [0, *(1 + own for own in deviating)]
        known = given_the_others(
            np.asarray(model.covariance), np.concatenate([size * block + np.arange(size) for block in blocks])
        )
        moved = np.zeros((terms * (1 + parameters) + parameters, size * len(blocks)))
        moved[:terms, :size] = change
        for place, of in enumerate(deviating.values(), 1):
            for parameter, by in of.items():
                rows, columns = (slice(n * at, n * (at + 1)) for n, at in ((terms, 1 + parameter), (size, place)))
                moved[rows, columns] += by * change
        return tuple(map(tuple, (moved @ known @ moved.T).tolist()))

    def _sum(
        self, model: Model | Alternative, names: Sequence[str]
    ) -> tuple[float, tuple[Term, ...], list[tuple[Term, ...]]]:
        """Return the constant and the terms in all parameters, and the new terms of each term of the share."""
        parts = [tuple(self._expanded(Term(1.0, own.factors), names)) for own in model.terms]
        whole = (own.scaled(term.coefficient) for term, some in zip(model.terms, parts, strict=True) for own in some)
        return *collect(model.constant, whole), parts

    def _expanded(self, term: Term, names: Sequence[str]) -> Iterator[Term]:
        """Return one term with the share as terms in all parameters."""
        whole, parts = names[self.whole], names[self.parts]
        others = Term(term.coefficient, tuple(own for own in term.factors if own.parameter != whole))
        share = next((own for own in term.factors if own.parameter == whole), Factor(whole))
        for log in range(share.log + 1):
            by = math.comb(share.log, log) * float(self.dimensions) ** log * (-1.0) ** (share.log - log)
            of_whole = Term(by, (Factor(whole, share.exponent * self.dimensions, log),))
            of_parts = Term(1.0, (Factor(parts, -share.exponent, share.log - log),))
            yield others.times(of_whole).times(of_parts)


def by_shares(
    models: Sequence[Model | None], points: FloatArray, values: FloatArray, used: _Flags, names: Sequence[str], fit: Fit
) -> dict[int, Model]:
    """Return models of call paths whose counts `models` do not reproduce and functions of shares explain.

    values: (N, C) of one configuration each; used: (N, C), where a call path was measured and executed.
    """
    found: dict[int, Model] = {}
    for at, open_models in unexplained(models, used):
        paths, current = np.array(list(open_models)), dict(open_models)
        for alone in (True, False):  # the simpler functions first
            better: dict[int, Model] = {}
            left = np.array([missed(model) for model in current.values()])
            former = np.array([_coefficients(model) for model in current.values()])
            for share in _shares(points[at], alone):
                shared = paths[share.may_explain(points[at], values[paths][:, at], left, former)]
                again = fit(share.sizes(points[at]), shared, at, None, False) if shared.size else []
                for path, model in zip(shared.tolist(), again, strict=True):
                    if not _explains_more(model, current[path], int(at.sum())):
                        continue
                    own = share.expand(_of_points(model, share, names, points[at]), names, ranges(points[at]))
                    if _determined(share, model, points[at]) and not rises_beyond(own, points[at], values[path, at]):
                        best = better.get(path)
                        better[path] = own if best is None or missed(own) < missed(best) else best
            found |= better
            current |= better
    return found


def _explains_more(model: Model, former: Model, points: int) -> bool:
    """Return whether a function of a share is better than a model of counts at this number of points.

    With more coefficients, it must have a much smaller residual. Otherwise the likelihood decides, with a penalty per
    coefficient. If the function does not reproduce the counts, the former model stays: a function of fewer parameters
    would only seem more certain.
    """
    if missed(model) > SHARE_MISSED:
        return False
    return missed(model) < to_beat(missed(former), _coefficients(former), _coefficients(model), points)


def _of_points(model: Model, share: Share, names: Sequence[str], points: FloatArray) -> Model:
    """Return a function of a share without notes that only apply to points with the share in place of the whole."""
    wrong = {*open_notes(names, share.sizes(points))} - {*open_notes(names, points)}
    return replace(model, notes=tuple(note for note in model.notes if note not in wrong))


def _coefficients(model: Model) -> int:
    return len(model.terms) + bool(model.constant)


def _determined(share: Share, model: Model, points: FloatArray) -> bool:
    """Return whether the values of the other parameters determine a function of a share.

    For each other parameter, the function must contain fewer functions of it than it has values. Each number of parts
    has different shares, so a function through all values would otherwise seem to be confirmed. If the function also
    depends on the parts, the same limit applies to functions of the whole. Work on a share does not grow as the share
    becomes smaller: x^-3 of n³/p would be p³/n⁹.
    """
    if model.is_constant or _falls(share, model):
        return False
    determined = set(range(points.shape[1])) - ({share.whole, share.parts} if share.alone else set())
    return all(_has_fewer(model, parameter, points) for parameter in determined)


def _has_fewer(model: Model, parameter: int, points: FloatArray) -> bool:
    """Return whether a model has one function of a parameter, or fewer functions than the parameter has values."""
    functions = {term.exponents(model.parameters[parameter]) for term in model.terms}
    if model.constant:
        functions.add((Fraction(0), 0))
    return len(functions) < max(np.unique(points[:, parameter]).size, 2)


def _falls(share: Share, model: Model) -> bool:
    """Return whether a part of a function of a share falls as the share grows."""
    name = model.parameters[share.whole]
    terms = [*model.terms, *(term for other in model.alternatives for term in other.terms)]
    return any(term.exponents(name)[0] < 0 for term in terms)


def _shares(points: FloatArray, alone: bool) -> list[Share]:
    """Return the possible shares: shares with several values, all at least 1."""
    varying = [index for index in range(points.shape[1]) if np.unique(points[:, index]).size > 1]
    if len(points) < SHARE_VALUES or points.min() <= 0 or not (alone or len(varying) == 2):
        return []
    pairs = permutations(varying, 2)
    shares = [Share(whole, parts, dimensions, alone) for whole, parts in pairs for dimensions in SHARE_DIMENSIONS]
    sizes = [share.of(points) for share in shares]
    return [
        share
        for share, own in zip(shares, sizes, strict=True)
        if own.min() >= 1.0 and np.unique(own).size >= SHARE_VALUES
    ]
