# SPDX-License-Identifier: Apache-2.0
"""Two states of a program side by side: differences, baselines, and what is expected of its effort."""
