# SPDX-License-Identifier: Apache-2.0
"""Measure this machine: caches, latencies, bandwidth, clock frequencies, floating-point rate, network."""
