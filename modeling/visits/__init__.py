# SPDX-License-Identifier: Apache-2.0
"""Counts that depend on data, through how often something happens: models of effort through visits."""
