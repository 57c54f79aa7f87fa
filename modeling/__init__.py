# SPDX-License-Identifier: Apache-2.0
"""Compute models and decisions from measurements. This package neither reads files nor prints."""
