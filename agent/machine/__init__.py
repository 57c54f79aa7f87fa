# SPDX-License-Identifier: Apache-2.0
"""What this machine can do, measured: caches, latencies, bandwidth, clocks, network."""
