# SPDX-License-Identifier: Apache-2.0
"""Numbers that changes of behaviour, and single runs that were held up, are judged by."""

from __future__ import annotations

# --- changes of behaviour: tests/modeling/pmnf/test_changes.py
# A model of a range needs so many values of the parameter that is divided.
CHANGE_LEAST_VALUES = 3
# And so many points more than coefficients, or it must be exact.
CHANGE_LEAST_FREEDOM = 2
# So many values, or an exact model, are enough to predict from. benchmarks/modeling_layouts.py, shapes
CHANGE_FOLLOWED_VALUES = 4
# Evidence that a change must have beyond the penalties of its coefficients.
CHANGE_LEAST_EVIDENCE = 10.0
# The weight of the model of all values beside that of a last range that deviates, as beside one without a slow run.
CHANGE_DOUBT = 0.1
# Standard deviation of the exponent with which such a range goes on, and what no form explains. Of 385 predictions
# beyond changes in published measurements (seven sets: three programs and an MPI library) 73 % are in their intervals
# with 0, 83 % with .2; of 391 of models that miss repeated values, fitted to the largest ones, 83 and 88 %.
CHANGE_EXPONENT_DEVIATION = 0.2
# Relative deviations below this are no deviations.
CHANGE_EXACT = 1e-6

# --- runs that were held up: tests/modeling/pmnf/test_slow_runs.py
# A run is slow if it took this times what the others say, and so many times their left-out errors more than that.
SLOW_RUN_FACTOR, SLOW_RUN_DEVIATIONS = 1.25, 4.0
# Configurations at least besides it, and configurations at most that are tried, the most conspicuous ones.
SLOW_RUN_LEAST_POINTS, SLOW_RUN_CANDIDATES = 5, 2
# Evidence beyond the penalties: with 10, scatter of 10 % in 12 runs hides a slow one at times; with 20, a run of 6 that
# takes twice its time goes unnoticed. The weight of the model of all values, which the run may be true of after all.
SLOW_RUN_LEAST_EVIDENCE, SLOW_RUN_DOUBT = 15.0, 0.1
