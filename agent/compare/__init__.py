# SPDX-License-Identifier: Apache-2.0
"""Compare two states of a program: differences, baselines, and expectations about its effort."""
