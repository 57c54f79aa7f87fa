# SPDX-License-Identifier: Apache-2.0
"""Measuring: one repetition of one configuration, and all of an experiment that a file declares."""
