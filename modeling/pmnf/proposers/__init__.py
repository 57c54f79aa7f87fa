# SPDX-License-Identifier: Apache-2.0
"""Proposers of hypotheses, one file each: they return candidates, all call paths at once."""
