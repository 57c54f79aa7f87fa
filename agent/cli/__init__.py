# SPDX-License-Identifier: Apache-2.0
"""The command line. Each command has a file; main.py combines the commands and prints errors as messages."""
