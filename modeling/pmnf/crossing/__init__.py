# SPDX-License-Identifier: Apache-2.0
"""Parameters that were measured on lines that cross: whether their functions are added or multiplied."""
