# SPDX-License-Identifier: Apache-2.0
"""Sources of processor counters, and their attribution to the call paths of a run."""
