# SPDX-License-Identifier: Apache-2.0
"""Names and types of the columns of Parquet tables in a run archive."""

from __future__ import annotations

from quipu.modeling.experiment import Metric

STATISTICS = {"callpath": "int32", "metric": "str", "ranks": "int32"}
STATISTICS |= dict.fromkeys(("sum", "min", "max", "mean", "std"), "float64")
STATISTICS |= dict.fromkeys(("min_rank", "max_rank"), "int32")
SKETCHES = {"callpath": "int32", "metric": "str", "level": "int8", "bucket": "int32", "count": "int32"}
RANKS = {
    "rank": "int32",
    "host": "str",
    "pid": "int32",
    "affinity": "str",
    "max_rss_bytes": "int64",
    "voluntary_switches": "int64",
    "involuntary_switches": "int64",
    "state": "str",
}


def value_type(metric: Metric) -> str:
    """Return the type of the column of a metric in values.parquet."""
    return "float64" if metric.unit == "s" else "int64"
