# SPDX-License-Identifier: Apache-2.0
"""Define machine learning models for comparison with tensor models, with one thread.

All models are fitted to logarithms of times. Positive parameters are given as logarithms. The inputs of the MLP, the
nearest neighbours, the Gaussian process and the ridge regression are standardized, and have categories as indicators.
"""

from __future__ import annotations

import importlib.util
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.linear_model import RidgeCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

Array = NDArray[np.float64]
KERNEL_ROWS, GAUSSIAN_ROWS = 1000, 4096
"""Rows for the fit of the length scales of a Gaussian process, and rows for its conditioning."""
MOST_CUBIC = 16
"""Largest number of inputs for which the ridge has terms of the third degree."""


def _lightgbm() -> Any:
    from lightgbm import LGBMRegressor

    return LGBMRegressor(n_estimators=800, learning_rate=0.05, num_leaves=63, n_jobs=1, verbose=-1, random_state=0)


def _xgboost() -> Any:
    from xgboost import XGBRegressor

    return XGBRegressor(n_estimators=800, learning_rate=0.05, max_depth=7, n_jobs=1, random_state=0)


def _catboost() -> Any:
    from catboost import CatBoostRegressor

    return CatBoostRegressor(
        iterations=1500, depth=8, thread_count=1, verbose=0, random_seed=0, allow_writing_files=False
    )


def _mars() -> Any:
    from pyearth import Earth

    return Earth(max_degree=2)


class _Gaussian:
    def __init__(self, width: int) -> None:
        kernel = ConstantKernel() * Matern(np.ones(width), nu=2.5) + WhiteKernel(1e-2)
        self.model = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)

    def fit(self, x: Array, y: Array) -> None:
        self.model.fit(x[:KERNEL_ROWS], y[:KERNEL_ROWS])
        self.model = GaussianProcessRegressor(self.model.kernel_, normalize_y=True, optimizer=None)
        self.model.fit(x[:GAUSSIAN_ROWS], y[:GAUSSIAN_ROWS])

    def predict(self, x: Array) -> Array:
        return np.asarray(self.model.predict(x))


# By name: the necessary package, and a constructor for a number of inputs.
PEERS: dict[str, tuple[str, Callable[[int], Any]]] = {
    "ridge": (
        "sklearn",
        lambda width: make_pipeline(
            PolynomialFeatures(3 if width <= MOST_CUBIC else 2), RidgeCV(np.logspace(-6, 3, 10))
        ),
    ),
    "neighbours": ("sklearn", lambda _: KNeighborsRegressor(5, weights="distance")),
    "trees": ("sklearn", lambda _: ExtraTreesRegressor(64, max_depth=16, random_state=0)),
    "histogram": (
        "sklearn",
        lambda _: HistGradientBoostingRegressor(learning_rate=0.05, max_iter=500, max_leaf_nodes=63, random_state=0),
    ),
    "mlp": (
        "sklearn",
        lambda _: MLPRegressor(
            hidden_layer_sizes=(256, 256), early_stopping=True, max_iter=400, n_iter_no_change=25, random_state=0
        ),
    ),
    "gaussian": ("sklearn", _Gaussian),
    "mars": ("pyearth", lambda _: _mars()),
    "lightgbm": ("lightgbm", lambda _: _lightgbm()),
    "xgboost": ("xgboost", lambda _: _xgboost()),
    "catboost": ("catboost", lambda _: _catboost()),
}


def available(name: str) -> bool:
    """Return whether the package of a model is installed."""
    return name in PEERS and importlib.util.find_spec(PEERS[name][0]) is not None


class Peer:
    """A fitted model with its preparation of inputs, which predicts times."""

    def __init__(self, name: str, x: Array, y: Array, categorical: Sequence[int]) -> None:
        self._categorical = tuple(categorical)
        self._logarithmic: list[bool] = np.atleast_1d((x > 0).all(axis=0)).tolist()
        self._indicators = {column: np.unique(x[:, column]) for column in categorical}
        inputs = self._raw(x)
        self._mean, self._spread = inputs.mean(axis=0), inputs.std(axis=0) + 1e-12
        logs = np.log(y)
        self._center, self._scale = logs.mean(), logs.std()
        self.model = PEERS[name][1](inputs.shape[1])
        self.model.fit((inputs - self._mean) / self._spread, (logs - self._center) / self._scale)

    def _raw(self, x: Array) -> Array:
        columns: list[Array] = []
        for column in range(x.shape[1]):
            if column in self._indicators:
                columns += [np.equal(x[:, column], value).astype(float) for value in self._indicators[column]]
            elif self._logarithmic[column]:
                columns.append(np.log(x[:, column]))
            else:
                columns.append(x[:, column])
        return np.column_stack(columns)

    def predict(self, x: Array) -> Array:
        """Return the predicted times of rows."""
        inputs = (self._raw(x) - self._mean) / self._spread
        return np.exp(np.asarray(self.model.predict(inputs)) * self._scale + self._center)


def peer(name: str, x: Array, y: Array, categorical: Sequence[int]) -> tuple[Peer, int]:
    """Return a fitted model and the bytes of its pickle."""
    fitted = Peer(name, x, y, categorical)
    return fitted, len(pickle.dumps(fitted.model))
