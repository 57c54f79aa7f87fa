# SPDX-License-Identifier: Apache-2.0
"""Prepare the values of call paths: repetitions, noise, lines of points."""
