# SPDX-License-Identifier: Apache-2.0
"""One run as data types, and the files that hold it: Parquet tables, run.json, checksums."""
