# SPDX-License-Identifier: Apache-2.0
"""Parameters that were measured on crossing lines: decide whether their functions are added or multiplied."""
