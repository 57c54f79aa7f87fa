# SPDX-License-Identifier: Apache-2.0
"""Experiments and models out of folders and files."""
