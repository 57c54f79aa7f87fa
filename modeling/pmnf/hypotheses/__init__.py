# SPDX-License-Identifier: Apache-2.0
"""Hypotheses as arrays: the library of terms, the terms at the points, and pools of fitted hypotheses."""
