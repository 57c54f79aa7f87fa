# SPDX-License-Identifier: Apache-2.0
"""What the values of call paths say before any model: repetitions, noise, lines of points."""
