# SPDX-License-Identifier: Apache-2.0
"""Criteria that choose among candidates: evidence, SMAPE, the rule of Extra-P."""
