# SPDX-License-Identifier: Apache-2.0
"""Least squares for many call paths and hypotheses at once.

fitter: to all digits, for counts. together: for noisy values, hypotheses with different numbers of terms at once.
shortlist, subsets, projection: fast rough errors that select the hypotheses to fit. scattered: points that form no
lines. weights: weights of values. largest: fits in which the largest points count more.
"""
