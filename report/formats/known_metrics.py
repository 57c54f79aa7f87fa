"""What metrics of files made by others are: those that Quipu knows by name, and cost metrics otherwise.

The names and kinds are those of `agent/runtime/metrics.def`; visits, time, bytes_sent and bytes_received are also
called so in Score-P profiles.
"""

from __future__ import annotations

from quipu.modeling.experiment import Metric

KNOWN = {
    metric.name: metric
    for metric in (
        Metric("visits", "1", "effort", "sum", "times the region was entered on this call path"),
        Metric("time", "s", "cost", "sum", "wall-clock time inside the region"),
        Metric("blocks", "1", "effort", "sum", "executed basic blocks of LLVM IR, after inlining"),
        Metric(
            "instructions",
            "1",
            "effort",
            "sum",
            "executed instructions of LLVM IR, after inlining and before vectorization",
        ),
        Metric(
            "flops", "1", "effort", "sum", "floating-point operations of any precision; a fused multiply-add is two"
        ),
        Metric("flops_single", "1", "effort", "sum", "floating-point operations in single precision"),
        Metric("flops_double", "1", "effort", "sum", "floating-point operations in double precision"),
        Metric("loads", "1", "effort", "sum", "loads from memory, before vectorization"),
        Metric("stores", "1", "effort", "sum", "stores to memory, before vectorization"),
        Metric("bytes_loaded", "B", "effort", "sum", "bytes loaded from memory"),
        Metric("bytes_stored", "B", "effort", "sum", "bytes stored to memory"),
        Metric("bytes_sent", "B", "effort", "sum", "payload given to MPI for sending"),
        Metric("bytes_received", "B", "effort", "sum", "payload received from MPI"),
        Metric("messages_sent", "1", "effort", "sum", "point-to-point messages and collective contributions sent"),
        Metric("messages_received", "1", "effort", "sum", "point-to-point messages and collective results received"),
        Metric("comm_size", "1", "effort", "max", "processes in the communicator of the operation"),
        Metric("wait_time", "s", "cost", "sum", "part of the time in MPI that was spent waiting for other processes"),
    )
}


def metric_named(name: str) -> Metric:
    """Return the metric of this name; one that Quipu does not know is a cost metric that adds up, without a unit."""
    return KNOWN.get(name) or Metric(name)
