"""An experiment as one table, in CSV or Parquet: a row for each call path, configuration and repetition."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
from quipu.modeling.experiment import Experiment

if TYPE_CHECKING:
    from pyarrow import Table

REPETITION = "repetition"
EXPORTED = {"quipu.export": "experiment"}
"""In the metadata of a file of Parquet: it is an export, and nobody's measurements."""


def table_of(experiment: Experiment) -> Table:
    """Return the exclusive values of all metrics, a column each; empty where a metric was not measured.

    The other columns are `callpath`, the parameters, and `repetition` from 1. A metric that is called like one of these
    is `metric NAME`. Rows without any value are left out.
    """
    import pyarrow

    shape = (len(experiment.tree), experiment.configurations)
    runs = max(values.shape[2] for values in experiment.values.values())
    wide = {name: np.full((*shape, runs), np.nan) for name in experiment.values}
    for name, values in experiment.values.items():
        wide[name][:, :, : values.shape[2]] = values
    path, point, run = np.nonzero(np.any([~np.isnan(values) for values in wide.values()], axis=0))
    columns = {"callpath": pyarrow.array(np.array(experiment.tree.unique_labels, dtype=object)[path])}
    columns |= {name: experiment.points[point, place] for place, name in enumerate(experiment.parameters)}
    columns[REPETITION] = run + 1
    taken = set(columns)
    for name, values in wide.items():
        found = values[path, point, run]
        columns[f"metric {name}" if name in taken else name] = pyarrow.array(found, mask=np.isnan(found))
    return pyarrow.table(columns).replace_schema_metadata(EXPORTED)


def csv(experiment: Experiment) -> bytes:
    """Return the table as CSV (RFC 4180) in UTF-8, with all digits."""
    from pyarrow.csv import write_csv

    content = io.BytesIO()
    write_csv(table_of(experiment), content)
    return content.getvalue()


def parquet(experiment: Experiment) -> bytes:
    """Return the table as a file of Parquet."""
    from pyarrow.parquet import write_table

    content = io.BytesIO()
    write_table(table_of(experiment), content)
    return content.getvalue()
