# SPDX-License-Identifier: Apache-2.0
"""Counters of processors per call path: where they come from, and how they get into a run."""
