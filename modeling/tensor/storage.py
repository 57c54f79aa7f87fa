# SPDX-License-Identifier: Apache-2.0
"""Store a tensor model as a JSON document and an npz archive of arrays, without pickle. Both are checked when read."""

from __future__ import annotations

import hashlib
import io
import math
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from ..documents import Count, Positive, Real, typed
from ..errors import FormatError
from ..experiment import FloatArray
from ..limits import current
from .als import Penalty
from .columns import ColumnModel, measured_values, values_of_knots
from .intervals import Spread
from .model import TensorModel
from .modes import Mode
from .positive import PositiveFactors
from .powers import Powers
from .selection import Step
from .support import Support, coarsened
from .trend import Continuation, Form, Trend

KIND, VERSION = "quipu tensor model", 1
MOST_SCORES = 200
"""Largest number of scores of held-out rows (intervals.py) that are stored; more are replaced by quantiles."""
_SINGLE = ("factor", "positive", "scores", "support_effects", "support_missing")
"""First parts of the names of arrays in single precision; the coefficients of the spread are, too (`_is_single`)."""
_JOINED = ("doubles", "singles")
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]


@dataclass(frozen=True)
class _ModeDocument:
    parameters: list[Count]
    signs: list[Literal[-1, 1]]
    kind: Literal["numeric", "categorical"]
    logarithmic: bool
    indexed: bool


@dataclass(frozen=True)
class _TrendDocument:
    columns: list[Count]
    logarithmic: list[bool]
    forms: list[Form]
    powers: list[Count]


@dataclass(frozen=True)
class _StepDocument:
    name: Annotated[str, msgspec.Meta(max_length=100)]
    rank: Positive
    parameters: Positive
    error: Real
    kept: bool


@dataclass(frozen=True)
class _Document:
    kind: str
    version: Positive
    parameters: list[Name]
    target: Name
    levels: dict[str, list[str]]
    modes: list[_ModeDocument]
    spread: list[_ModeDocument]
    trend: _TrendDocument
    rank: Positive
    ridge: Real
    smoothness: Real
    center: Real
    scale: Real
    error: Real | None
    spread_offset: Real
    positive_center: Real | None
    rows: Count
    sha256: str
    steps: list[_StepDocument] = field(default_factory=list)
    trends: list[_TrendDocument] = field(default_factory=list)
    supported: list[Count] = field(default_factory=list)
    cells: list[Count] = field(default_factory=list)
    arrays: dict[Name, Annotated[list[Count], msgspec.Meta(max_length=2)]] = field(default_factory=dict)


def stored(model: ColumnModel) -> tuple[dict[str, Any], bytes]:
    """Return the JSON document and the content of the npz archive of a model.

    The document contains the checksum of the archive.
    """
    fitted = model.model
    arrays: dict[str, FloatArray] = {"low": fitted.low_, "high": fitted.high_, "whole": fitted.whole_.astype(float)}
    for number, (mode, factor) in enumerate(zip(fitted.modes_, fitted.factors_, strict=True)):
        arrays[f"knots{number}"], arrays[f"factor{number}"] = mode.knots, factor
        if fitted.positive_ is not None:
            arrays[f"positive{number}"] = fitted.positive_.factors[number]
    for number, (mode, part) in enumerate(zip(fitted.spread_.modes, fitted.spread_.coefficients, strict=True)):
        arrays[f"spread_knots{number}"], arrays[f"spread{number}"] = mode.knots, part
    for number, values in enumerate(fitted.values_):
        if len(values) and not np.array_equal(values, values_of_knots(fitted, number)):
            arrays[f"values{number}"] = values
    arrays["scores"] = _thinned(fitted.spread_.scores)
    trends = fitted.trend_.trends or (Trend(),)
    for number, trend in enumerate(trends):
        prefix = _prefix(number)
        for name in ("slopes", "reaches", "bends", "errors", "distances"):
            arrays[f"{prefix}_{name}"] = getattr(trend, name)
        for name in ("lows", "exponents", "logarithms", "coefficients", "offsets"):
            arrays[f"{prefix}_{name}"] = getattr(trend.powers, name)
        arrays[f"{prefix}_capped"] = np.array(trend.powers.capped, dtype=np.float64)
    arrays["trend_shares"] = np.array(fitted.trend_.shares or (1.0,))
    arrays |= _support_arrays(fitted.support_)
    shapes, joined = _joined(arrays)
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **joined)
    content = file.getvalue()
    error = fitted.error_ if np.isfinite(fitted.error_) else None
    document = _Document(
        KIND,
        VERSION,
        list(model.parameters),
        model.target,
        {name: list(levels) for name, levels in model.levels.items()},
        [_mode_document(mode) for mode in fitted.modes_],
        [_mode_document(mode) for mode in fitted.spread_.modes],
        _trend_document(trends[0]),
        fitted.rank_,
        fitted.penalty_.ridge,
        fitted.penalty_.smoothness,
        fitted.center_,
        fitted.scale_,
        error,
        fitted.spread_.offset,
        fitted.positive_.center if fitted.positive_ is not None else None,
        fitted.seen_,
        hashlib.sha256(content).hexdigest(),
        [_step_document(step, fitted.scale_) for step in fitted.steps_ if np.isfinite(step.error)],
        [_trend_document(trend) for trend in trends[1:]],
        list(fitted.support_.columns),
        [len(edges) for edges in fitted.support_.edges],
        shapes,
    )
    return asdict(document), content


def expect_model(document: object, source: object) -> Mapping[str, Any]:
    """Return `document` if it is the document of a tensor model. Raises FormatError otherwise."""
    if not isinstance(document, Mapping) or document.get("kind") != KIND:
        raise FormatError(source, "is not a tensor model: give a file that quipu tensor fit wrote")
    return document


def restored(document: object, content: bytes, source: object) -> ColumnModel:
    """Return the model of a document and the content of its archive.

    source: name of the file for errors. Raises FormatError, which names the wrong key or array.
    """
    document = expect_model(document, source)
    if document.get("version") != VERSION:
        raise FormatError(
            source, f"has version {document.get('version')}, this Quipu reads {VERSION}: fit the model again"
        )
    read = typed(document, _Document, source)
    if hashlib.sha256(content).hexdigest() != read.sha256:
        raise FormatError(source, "its .npz is damaged or belongs to another model: restore both files, or fit again")
    arrays = _Arrays(_separated(_arrays(content, source), read.arrays, source), source)
    width = len(read.parameters)
    if not 0 < width == len(set(read.parameters)) or not read.scale > 0:
        raise FormatError(source, "parameters must be different names, and scale above 0")
    model = TensorModel()
    model.n_features_in_ = width
    model.low_, model.high_ = arrays.of("low", (width,)), arrays.of("high", (width,))
    model.whole_ = arrays.of("whole", (width,)) != 0.0
    model.modes_ = tuple(arrays.mode(one, f"knots{at}", width) for at, one in enumerate(read.modes))
    model.values_ = tuple(arrays.values(f"values{at}", model.low_[at], model.high_[at]) for at in range(width))
    shapes = [(mode.size, read.rank) for mode in model.modes_]
    model.factors_ = [arrays.of(f"factor{at}", shape) for at, shape in enumerate(shapes)]
    model.positive_ = None
    if read.positive_center is not None:
        factors = tuple(arrays.of(f"positive{at}", (mode.size, -1)) for at, mode in enumerate(model.modes_))
        if len({factor.shape[1] for factor in factors}) != 1 or not all((factor > 0).all() for factor in factors):
            raise FormatError(source, "its positive factors have other ranks, or are not positive")
        model.positive_ = PositiveFactors(factors, read.positive_center)
    spread = tuple(arrays.mode(one, f"spread_knots{at}", width) for at, one in enumerate(read.spread))
    parts = tuple(arrays.of(f"spread{at}", (mode.size,)) for at, mode in enumerate(spread))
    model.spread_ = Spread(spread, parts, read.spread_offset, np.sort(arrays.of("scores", (-1,))))
    documents = [read.trend, *read.trends]
    trends = tuple(_trend(one, arrays, _prefix(at), width, source) for at, one in enumerate(documents))
    shares = arrays.of("trend_shares", (len(trends),), np.ones(1))
    if (shares < 0).any() or not np.isclose(shares.sum(), 1.0):
        raise FormatError(source, "trends: shares must be positive and sum to 1")
    model.trend_ = Continuation(trends, tuple(shares.tolist()))
    model.support_ = _support(read, model.modes_, arrays, width, source)
    model.additive_ = not model.support_.modes
    model.rank_, model.penalty_ = read.rank, Penalty(read.ridge, read.smoothness)
    model.center_, model.scale_ = read.center, read.scale
    model.error_ = float("nan") if read.error is None else read.error
    model.seen_ = read.rows
    model.steps_ = [Step(one.name, one.rank, one.parameters, one.error / read.scale, one.kept) for one in read.steps]
    model.categorical = tuple(mode.parameters[0] for mode in model.modes_ if mode.kind == "categorical")
    found = ColumnModel(tuple(read.parameters), {n: tuple(own) for n, own in read.levels.items()}, read.target, model)
    for name, levels in found.levels.items():
        if name not in found.parameters or not np.isin(measured_values(found, name), np.arange(len(levels))).all():
            raise FormatError(source, f"levels: the levels of {name!r} are not the values of a parameter")
    return found


class _Arrays:
    """Arrays of a file, each checked for its shape before it is used."""

    def __init__(self, arrays: Mapping[str, FloatArray], source: object) -> None:
        self._arrays, self._source = arrays, source

    def of(self, name: str, shape: tuple[int, ...], default: FloatArray | None = None) -> FloatArray:
        """Return the array with this name and shape, of finite numbers; FormatError otherwise.

        shape: -1 accepts any size. default: the result for files of earlier versions, which lack the array.
        """
        array = self._arrays.get(name, default)
        if array is None:
            raise FormatError(self._source, f"has no array {name!r} in its .npz: fit the model again")
        fits = array.ndim == len(shape) and all(
            want in (-1, have) for want, have in zip(shape, array.shape, strict=True)
        )
        if not fits or not np.isfinite(array).all():
            raise FormatError(
                self._source, f"array {name!r} in its .npz has another shape, or numbers that are not finite"
            )
        return array

    def values(self, name: str, low: float, high: float) -> FloatArray:
        """Return the measured values of a parameter, ascending in low .. high; empty if the file lacks the array."""
        found = self.of(name, (-1,), np.empty(0))
        if len(found) and (np.any(np.diff(found) <= 0) or found[0] < low or found[-1] > high):
            raise FormatError(self._source, f"{name}: measured values must ascend, within the measured range")
        return found

    def mode(self, read: _ModeDocument, name: str, width: int) -> Mode:
        """Return the mode of a document, with knots from the array `name`. width: number of parameters."""
        knots = self.of(name, (-1,))
        known = all(parameter < width for parameter in read.parameters)
        if not known or not len(knots) or np.any(np.diff(knots) <= 0) or len(read.parameters) not in (1, 2):
            raise FormatError(self._source, f"{name}: knots must ascend and belong to one or two existing parameters")
        if len(read.signs) != len(read.parameters):
            raise FormatError(self._source, f"{name}: a sign for each parameter is needed")
        return Mode(tuple(read.parameters), tuple(read.signs), read.kind, read.logarithmic, knots, read.indexed)


def _prefix(number: int) -> str:
    """Return the prefix of the names of the arrays of trend number 0, 1, …: trend, trend1, …"""
    return f"trend{number or ''}"


def _trend_document(trend: Trend) -> _TrendDocument:
    logarithmic = [*map(bool, trend.logarithmic)]
    return _TrendDocument(list(trend.columns), logarithmic, list(trend.forms), list(trend.powers.columns))


def _trend(read: _TrendDocument, arrays: _Arrays, prefix: str, width: int, source: object) -> Trend:
    count = len(read.columns)
    if not all(len(part) == count for part in (read.logarithmic, read.forms)) or any(
        column >= width for column in (*read.columns, *read.powers)
    ):
        raise FormatError(source, "trend: an entry for each of its columns is needed")
    coefficients = arrays.of(f"{prefix}_coefficients", (-1,))
    shape = (len(coefficients), len(read.powers))
    powers = Powers()
    if len(coefficients):
        powers = Powers(
            tuple(read.powers),
            arrays.of(f"{prefix}_lows", shape[1:], np.ones(shape[1])),
            arrays.of(f"{prefix}_exponents", shape),
            arrays.of(f"{prefix}_logarithms", shape, np.zeros(shape)),
            coefficients,
            arrays.of(f"{prefix}_offsets", shape[1:], np.ones(shape[1])),
            tuple((arrays.of(f"{prefix}_capped", shape[1:], np.zeros(shape[1])) > 0).tolist()),
        )
        if not all((part > 0).all() for part in (powers.lows, powers.offsets, coefficients)):
            raise FormatError(source, "trend: coefficients, offsets and least values must be positive")
    reaches = arrays.of(f"{prefix}_reaches", (count,), np.ones(count))
    if not (reaches > 0).all():
        raise FormatError(source, "trend: reaches must be positive")
    bends = arrays.of(f"{prefix}_bends", (count, 3 + count), np.tile(np.eye(1, 3 + count), (count, 1)))
    if not (bends[:, 0] > 0).all():
        raise FormatError(source, "trend: scales of logarithmic trends must be positive")
    return Trend(
        tuple(read.columns),
        tuple(read.logarithmic),
        tuple(read.forms),
        arrays.of(f"{prefix}_slopes", (count, 2)),
        reaches,
        bends,
        powers,
        arrays.of(f"{prefix}_errors", (count,)),
        arrays.of(f"{prefix}_distances", (count,)),
    )


def _support_arrays(support: Support) -> dict[str, FloatArray]:
    """Return the arrays of the support of a model. The flags of all pairs are bits in one array of bytes."""
    flags = np.concatenate([np.empty(0, dtype=bool), *(missing.ravel() for missing in support.missing)])
    arrays = {
        "support_edges": np.concatenate([np.empty(0), *support.edges]),
        "support_missing": np.packbits(flags).astype(np.float64),
        "support_effects": np.concatenate([np.empty(0), *support.effects]),
    }
    if support.modes:
        arrays["support_bounds"] = np.array([support.center, support.lowest, support.highest, support.typical])
    return arrays


def _support(read: _Document, modes: Sequence[Mode], arrays: _Arrays, width: int, source: object) -> Support:
    columns = tuple(read.supported)
    if len(columns) != len(read.cells) or len(set(columns)) < len(columns) or any(one >= width for one in columns):
        raise FormatError(source, "support: a number of cells for each of its parameters is needed")
    joined = arrays.of("support_edges", (sum(read.cells),), np.zeros(0))
    edges = tuple(np.split(joined, np.cumsum(read.cells[:-1], dtype=int)))[: len(columns)]
    if any((np.diff(one) <= 0).any() for one in edges):
        raise FormatError(source, "support: the edges of cells must ascend")
    shapes = [(one + 1, other + 1) for at, one in enumerate(read.cells) for other in read.cells[at + 1 :]]
    sizes = [one * other for one, other in shapes]
    packed = arrays.of("support_missing", (-(-sum(sizes) // 8),), np.zeros(0))
    flags = np.split(np.unpackbits(packed.astype(np.uint8), count=sum(sizes)), np.cumsum(sizes[:-1], dtype=int))
    missing = tuple(part.reshape(shape).astype(bool) for part, shape in zip(flags, shapes, strict=False))
    found = arrays.of("support_effects", (-1,), np.zeros(0))
    if not found.size:
        return Support(columns, edges, missing)
    coarse = tuple(coarsened(mode) for mode in modes)
    found = arrays.of("support_effects", (sum(mode.size for mode in coarse),))
    effects = tuple(np.split(found, np.cumsum([mode.size for mode in coarse])[:-1]))
    center, lowest, highest, typical = arrays.of("support_bounds", (4,)).tolist()
    if lowest > highest or typical < 0:
        raise FormatError(source, "support: the least deviation is above the largest, or the typical one below 0")
    return Support(columns, edges, missing, coarse, effects, center, lowest, highest, typical)


def _is_single(name: str) -> bool:
    return name.startswith(_SINGLE) or (name.startswith("spread") and not name.startswith("spread_"))


def _joined(arrays: Mapping[str, FloatArray]) -> tuple[dict[str, list[int]], dict[str, Any]]:
    """Return the shapes of the arrays, and one array for each precision that contains all of their numbers.

    Two large arrays need less space than many small ones.
    """
    shapes = {name: list(array.shape) for name, array in arrays.items()}
    parts: tuple[list[FloatArray], list[FloatArray]] = ([np.empty(0)], [np.empty(0)])
    for name, array in arrays.items():
        parts[_is_single(name)].append(array.ravel())
    doubles, singles = (np.concatenate(part) for part in parts)
    return shapes, dict(zip(_JOINED, (doubles, singles.astype(np.float32)), strict=True))


def _separated(
    arrays: dict[str, FloatArray], shapes: Mapping[str, Sequence[int]], source: object
) -> dict[str, FloatArray]:
    """Return the arrays that `_joined` combined. Files of earlier versions have no shapes, and contain them by name."""
    if not shapes:
        return arrays
    parts = [arrays.get(name, np.empty(0)) for name in _JOINED]
    if wrong := [name for name, part in zip(_JOINED, parts, strict=True) if part.ndim != 1]:
        raise FormatError(source, f"{wrong[0]} in its .npz is not a list of numbers: restore both files, or fit again")
    places = [0, 0]
    result = {}
    for name, shape in shapes.items():
        single, size = _is_single(name), math.prod(shape)
        found = parts[single][places[single] : places[single] + size]
        places[single] += size
        if found.shape != (size,):
            break
        result[name] = found.reshape(shape)
    if places != [part.size for part in parts]:
        raise FormatError(source, "its .npz has a wrong number of values: restore both files, or fit again")
    return result


def _arrays(content: bytes, source: object) -> dict[str, FloatArray]:
    """Return the arrays of an npz file in double precision.

    Checks first that the sizes of the arrays are within the limit on memory (`limits`).
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            current().spend(4 * sum(entry.file_size for entry in archive.infolist()))
        with np.load(io.BytesIO(content), allow_pickle=False) as loaded:
            return {name: _number_array(loaded[name]) for name in loaded.files}
    except (zipfile.BadZipFile, zlib.error, ValueError, OSError, EOFError, KeyError, NotImplementedError) as error:
        raise FormatError(source, f"its .npz cannot be read: {error}") from error


def _number_array(array: Any) -> FloatArray:
    if array.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"an array of {array.dtype}")
    return np.asarray(array, dtype=np.float64)


def _mode_document(mode: Mode) -> _ModeDocument:
    signs: list[Any] = list(mode.signs)
    return _ModeDocument(list(mode.parameters), signs, mode.kind, bool(mode.logarithmic), bool(mode.indexed))


def _step_document(step: Step, scale: float) -> _StepDocument:
    """Return a step of the search with its error as MLogQ, rounded to four digits."""
    return _StepDocument(step.name, step.rank, step.parameters, float(f"{step.error * scale:.4g}"), step.kept)


def _thinned(scores: FloatArray) -> FloatArray:
    """Return the scores, or `MOST_SCORES` evenly spaced quantiles of them, each rounded up to an existing score."""
    if len(scores) <= MOST_SCORES:
        return scores
    places = (np.arange(1, MOST_SCORES + 1)) / (MOST_SCORES + 1)
    return np.asarray(np.quantile(scores, places, method="higher"))
