# SPDX-License-Identifier: Apache-2.0
"""Check that a point given by the user fits an experiment."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from quipu.modeling.errors import UsageError

from ..catalogue import MISSING_VALUE, UNKNOWN_PARAMETER


def checked_point(
    option: str,
    values: Mapping[str, float],
    parameters: Sequence[str],
    partial: bool = False,
    with_zero: Sequence[str] = (),
    ranks: Collection[str] = (),
) -> dict[str, float]:
    """Return a point with a value for each of `parameters`, in their order; with `partial` some may be missing.

    option: the command-line option with the point, for messages. with_zero: parameters whose value may be 0. Other
    values must be above 0, because models contain logarithms and negative powers. ranks: parameters that are numbers
    of ranks, and therefore whole numbers.

    Raises UsageError with the option and the wrong parameter.
    """
    if values and not parameters:
        raise UsageError(f"{option}: this experiment has no parameters: measure it with --param NAME=NUMBER")
    known = ", ".join(parameters)
    if unknown := [name for name in values if name not in parameters]:
        raise UsageError(UNKNOWN_PARAMETER(option=option, names=", ".join(unknown), known=known))
    if not partial and (missing := [name for name in parameters if name not in values]):
        example = ",".join(f"{name}=NUMBER" for name in parameters)
        raise UsageError(MISSING_VALUE(option=option, names=", ".join(missing), example=example))
    ordered = {name: values[name] for name in (values if partial else parameters)}
    if low := [name for name, value in ordered.items() if value < 0 or (value == 0 and name not in with_zero)]:
        given = ", ".join(f"{name}={ordered[name]:g}" for name in low)
        raise UsageError(f"{option}: {given}: the number must be above 0")
    for name, value in ordered.items():
        if name in ranks and not float(value).is_integer():
            raise UsageError(f"{option}: {name} is the number of ranks and must be a whole number, not {value:.15g}")
    return ordered
