# SPDX-License-Identifier: Apache-2.0
"""Merge the raw profiles of a run into an archive, and run archives into an experiment."""
