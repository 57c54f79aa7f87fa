# SPDX-License-Identifier: Apache-2.0
"""Write an experiment as a table in CSV or Parquet: one row for each call path, configuration and repetition."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
from quipu.modeling.experiment import Experiment
from quipu.modeling.printable import one_line
from quipu.modeling.table_columns import CALLPATH, REPETITION, table_columns

if TYPE_CHECKING:
    from pyarrow import Table

_FORMULA = ("=", "+", "-", "@")
EXPORTED = {"quipu.export": "experiment"}
"""Metadata of a Parquet file that Quipu exported. A later export may overwrite a file with this metadata."""


def table_of(experiment: Experiment) -> Table:
    """Return a table with the exclusive values of all metrics, one column per metric (`table_columns`).

    Missing values are empty cells. Rows without any value are left out. Repetitions count from 1.
    """
    import pyarrow

    shape = (len(experiment.tree), experiment.configurations)
    runs = max(values.shape[2] for values in experiment.values.values())
    wide = {name: np.full((*shape, runs), np.nan) for name in experiment.values}
    for name, values in experiment.values.items():
        wide[name][:, :, : values.shape[2]] = values
    path, point, run = np.nonzero(np.any([~np.isnan(values) for values in wide.values()], axis=0))
    named = table_columns(experiment.parameters, experiment.values)
    labels = np.array([one_line(label) for label in experiment.tree.unique_labels], dtype=object)
    columns = {CALLPATH: pyarrow.array(labels[path])}
    columns |= {named.parameters[name]: experiment.points[point, at] for at, name in enumerate(experiment.parameters)}
    columns[REPETITION] = run + 1
    for name, values in wide.items():
        found = values[path, point, run]
        columns[named.metrics[name]] = pyarrow.array(found, mask=np.isnan(found))
    return pyarrow.table(columns).replace_schema_metadata(EXPORTED)


def csv(experiment: Experiment) -> bytes:
    """Return the table as CSV (RFC 4180) in UTF-8, with all digits of the numbers.

    A text that a spreadsheet would execute as a formula gets an apostrophe at its begin (OWASP, CSV injection).
    """
    import pyarrow
    from pyarrow.csv import write_csv

    table = table_of(experiment)
    texts = pyarrow.array([_no_formula(label) for label in table[CALLPATH].to_pylist()], pyarrow.string())
    table = table.set_column(0, CALLPATH, texts).rename_columns(list(map(_no_formula, table.column_names)))
    content = io.BytesIO()
    write_csv(table, content)
    return content.getvalue()


def parquet(experiment: Experiment) -> bytes:
    """Return the table as the content of a Parquet file."""
    from pyarrow.parquet import write_table

    content = io.BytesIO()
    write_table(table_of(experiment), content)
    return content.getvalue()


def _no_formula(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text
