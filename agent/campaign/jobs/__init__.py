# SPDX-License-Identifier: Apache-2.0
"""Runs of a campaign as jobs of a batch scheduler."""
