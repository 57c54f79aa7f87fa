# SPDX-License-Identifier: Apache-2.0
"""Constants for changes of behaviour and for disturbed single runs."""

from __future__ import annotations

# --- changes of behaviour: tests/modeling/pmnf/test_changes.py
# A model of a range needs this number of values of the divided parameter.
CHANGE_LEAST_VALUES = 3
# It also needs this number of points beyond its coefficients, or must be exact.
CHANGE_LEAST_FREEDOM = 2
# This number of values, or an exact model, is enough to predict from a range. benchmarks/modeling_layouts.py, shapes
CHANGE_FOLLOWED_VALUES = 4
# Evidence that a change needs beyond the penalties of its coefficients.
CHANGE_LEAST_EVIDENCE = 10.0
# The weight of the model of all values, in addition to the model of a last range that deviates, or to the model without
# a slow run.
CHANGE_DOUBT = 0.1
# Standard deviation of the exponent beyond such a range, and of values that no form explains. Of 385 predictions beyond
# changes in published measurements (seven sets: three programs and an MPI library), 73 % are in their intervals with 0,
# and 83 % with .2; of 391 predictions of models that miss repeated values, fitted to the largest ones, 83 and 88 %.
CHANGE_EXPONENT_DEVIATION = 0.2
# Relative deviations below this count as 0.
CHANGE_EXACT = 1e-6

# --- runs that were held up: tests/modeling/pmnf/test_slow_runs.py
# A run is slow if it took this multiple of the prediction from the others, and exceeds it by this multiple of their
# left-out errors.
SLOW_RUN_FACTOR, SLOW_RUN_DEVIATIONS = 1.25, 4.0
# Smallest number of other configurations, and largest number of candidates, the most conspicuous first.
SLOW_RUN_LEAST_POINTS, SLOW_RUN_CANDIDATES = 5, 2
# Evidence beyond the penalties: with 10, scatter of 10 % in 12 runs hides a slow one at times; with 20, a run of 6 that
# takes twice its time goes unnoticed. The weight of the model of all values, which the run may be true of after all.
SLOW_RUN_LEAST_EVIDENCE, SLOW_RUN_DOUBT = 15.0, 0.1
