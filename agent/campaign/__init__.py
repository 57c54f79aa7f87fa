# SPDX-License-Identifier: Apache-2.0
"""Measure one repetition of one configuration, or all runs of an experiment that a file declares."""
