# SPDX-License-Identifier: Apache-2.0
"""`quipu tensor`: models of times that depend on many parameters. Each of its commands has a separate file."""

from __future__ import annotations

import inspect

import typer

from ..mixed import with_mixed
from ..options import CONTEXT, example_first
from . import explain, fit, predict, tune

HELP = """Model times that depend on many parameters, and find the best configuration.

\b
Example: quipu tensor fit data.csv --target time_s --categorical layout,solver -o model.json
         quipu tensor predict model.json data.csv -o predicted.csv
         quipu tensor tune model.json --at n=1e6 --constraint 'ppn * tpp <= 128'
         quipu tensor explain model.json

DATA is a CSV file, a Parquet file, or an experiment of Quipu.
"""


COMMANDS = {
    "fit": (fit, "Fit a tensor-completion model to measured times."),
    "predict": (predict, "Predict times with their intervals."),
    "tune": (tune, "Find the configuration with the lowest predicted time."),
    "explain": (explain, "Show how much each parameter matters."),
}


def application() -> typer.Typer:
    """Return the commands below `quipu tensor`."""
    app = typer.Typer(help=example_first(HELP), add_completion=False, rich_markup_mode=None, context_settings=CONTEXT)
    for name, (module, summary) in COMMANDS.items():
        text = example_first(inspect.getdoc(module.command) or "")
        app.command(name, help=text, short_help=summary, context_settings=CONTEXT)(with_mixed(module.command))
    return app
