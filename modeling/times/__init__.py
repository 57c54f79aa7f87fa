# SPDX-License-Identifier: Apache-2.0
"""Predict times: computation as work × rate, MPI operations as calls, steps, bytes and waiting."""
