# SPDX-License-Identifier: Apache-2.0
"""Data types of one run, and their files: Parquet tables, run.json, checksums."""
