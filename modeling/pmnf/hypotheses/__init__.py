# SPDX-License-Identifier: Apache-2.0
"""Hypotheses as arrays: the library of functions, their values at the points, pools of fitted ones."""
