"""What this machine can do, measured: caches, latencies, bandwidth, clocks, network."""
