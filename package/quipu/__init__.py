# SPDX-License-Identifier: Apache-2.0
"""Quipu measures parallel programs and models how they scale.

    import quipu

    quipu.campaign("heat.toml")                      # run the configurations that the file declares
    experiment = quipu.open("heat.runs")             # read the measurements
    models = quipu.model(experiment)                 # model every metric of every call path
    quipu.predict(models, {"p": 1024, "n": 320})     # predict a point that was not measured

All errors that these functions raise are subclasses of `QuipuError`.

Each name is imported when it is used for the first time, so `import quipu` is fast. The reason: every process of a
measured Python program may import parts of this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quipu.agent.archive.run import RunArchive
    from quipu.agent.campaign.campaign import CampaignResult
    from quipu.agent.campaign.repetition import RunFailed
    from quipu.api import campaign, model, open, predict, run
    from quipu.modeling.errors import (
        EnvironmentProblem,
        FormatError,
        MeasurementError,
        ModelingError,
        QuipuError,
        UsageError,
    )
    from quipu.modeling.evaluation import Evaluation, Ranked
    from quipu.modeling.experiment import CallTree, Experiment, Metric, Region, RegionKind
    from quipu.modeling.models import Analysis
    from quipu.modeling.pmnf.model import Model, Prediction
    from quipu.modeling.pmnf.options import NoModel
    from quipu.modeling.priors.path_model import PathModel

_PLACES: dict[str, tuple[str, ...]] = {
    "quipu.api": ("open", "run", "campaign", "model", "predict"),
    "quipu.agent.archive.run": ("RunArchive",),
    "quipu.agent.campaign.campaign": ("CampaignResult",),
    "quipu.agent.campaign.repetition": ("RunFailed",),
    "quipu.modeling.errors": (
        "EnvironmentProblem",
        "FormatError",
        "MeasurementError",
        "ModelingError",
        "QuipuError",
        "UsageError",
    ),
    "quipu.modeling.evaluation": ("Evaluation", "Ranked"),
    "quipu.modeling.experiment": ("Experiment", "CallTree", "Region", "RegionKind", "Metric"),
    "quipu.modeling.models": ("Analysis",),
    "quipu.modeling.pmnf.model": ("Model", "Prediction"),
    "quipu.modeling.pmnf.options": ("NoModel",),
    "quipu.modeling.priors.path_model": ("PathModel",),
}

__all__ = [
    "Analysis",
    "CallTree",
    "CampaignResult",
    "EnvironmentProblem",
    "Evaluation",
    "Experiment",
    "FormatError",
    "MeasurementError",
    "Metric",
    "Model",
    "ModelingError",
    "NoModel",
    "PathModel",
    "Prediction",
    "QuipuError",
    "Ranked",
    "Region",
    "RegionKind",
    "RunArchive",
    "RunFailed",
    "UsageError",
    "campaign",
    "model",
    "open",
    "predict",
    "run",
]

if not TYPE_CHECKING:  # with this function, a type checker would accept every name

    def __getattr__(name: str) -> object:
        """Import a name of `__all__` when it is used for the first time."""
        for module, names in _PLACES.items():
            if name in names:
                from importlib import import_module

                found = getattr(import_module(module), name)
                globals()[name] = found
                return found
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        """Return the public names and the names that have been imported."""
        return sorted({*globals(), *__all__})
