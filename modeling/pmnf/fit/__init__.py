# SPDX-License-Identifier: Apache-2.0
"""Batched least squares: precise for counts, of different sizes together for noisy values, in closed form for lists."""
