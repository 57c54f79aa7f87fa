# SPDX-License-Identifier: Apache-2.0
"""The command line: one file per command; main.py combines them and prints errors as messages."""
