# SPDX-License-Identifier: Apache-2.0
"""The uncertainty of a model: covariance of its coefficients, other likely hypotheses, and notes for the user."""
