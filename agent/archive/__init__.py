# SPDX-License-Identifier: Apache-2.0
"""Represent one run as data types, and store it in files: Parquet tables, run.json, checksums."""
