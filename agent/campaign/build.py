"""The build command of a campaign."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType

from quipu.modeling.errors import MeasurementError

from ..launch.process import run_process
from .file import Campaign

_NOTHING: Mapping[str, str] = MappingProxyType({})


def build(campaign: Campaign, variables: Mapping[str, str] = _NOTHING) -> float:
    """Run the campaign's build command with these variables; return the seconds. MeasurementError if it fails."""
    if not campaign.build:
        return 0.0
    text = " ".join(campaign.build)
    environment = {**os.environ, **campaign.environment, **variables}
    try:
        ending = run_process(campaign.build, environment, folder=campaign.path.parent)
    except OSError as error:
        raise MeasurementError(f"{campaign.path}: build: {text}: {error.strerror or error}") from error
    if ending.text:
        raise MeasurementError(f"{campaign.path}: build: {text}: {ending.text}; nothing was measured")
    return ending.seconds
