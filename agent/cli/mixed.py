# SPDX-License-Identifier: Apache-2.0
"""Add the option --mixed to all commands that read experiments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

import typer

HELP = "Allow runs of different programs, commands, measuring options or machines in one experiment."


def with_mixed(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the additional option --mixed. For its effect see `mixed_runs`."""

    @functools.wraps(command)
    def wrapped(*, mixed: bool, **options: object) -> None:
        if not mixed:
            command(**options)
            return
        from ..merge.experiment import mixed_runs  # imported here, because the import is slow

        with mixed_runs(True):
            command(**options)

    signature = inspect.signature(command, eval_str=True)
    option = inspect.Parameter(
        "mixed", inspect.Parameter.KEYWORD_ONLY, default=typer.Option(False, "--mixed", help=HELP), annotation=bool
    )
    vars(wrapped)["__signature__"] = signature.replace(parameters=[*signature.parameters.values(), option])
    wrapped.__annotations__ = {**command.__annotations__, "mixed": bool}
    return wrapped
