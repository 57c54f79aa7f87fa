# SPDX-License-Identifier: Apache-2.0
"""Counts that are no sums of powers and logarithms: steep functions, steps, shares of a whole, polynomials."""
