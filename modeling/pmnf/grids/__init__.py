# SPDX-License-Identifier: Apache-2.0
"""Counts that depend on the process grid and on the part of a domain that a rank has."""
