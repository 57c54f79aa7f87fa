# SPDX-License-Identifier: Apache-2.0
"""Batched least squares: to the last digits for counts, of all sizes together for noise, closed form for lists."""
