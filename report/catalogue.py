# SPDX-License-Identifier: Apache-2.0
"""The messages of views: for each message its code, text, explanation and page of the documentation."""

from __future__ import annotations

from quipu.modeling.message import Entry

BEYOND_MEASURED = Entry(
    "beyond-measured",
    "extrapolation: {parts}",
    "The point is outside of the measured range, so that the prediction depends on the formula alone. Benchmarks check "
    "predictions and their intervals up to 16 times beyond the measured range.",
    "howto/reading-a-prediction.md",
)
FAR_BEYOND = Entry(
    "far-beyond",
    "far extrapolation: {parts}. Benchmarks check predictions and intervals only up to {far:g} times beyond the "
    "measured range: measure closer to the point if possible",
    "The point is so far outside of the measured range that no benchmark of Quipu covers it. A term that is too small "
    "to be measured can dominate there. Measure larger values of the parameters. A count-only run (quipu run "
    "--counts) needs fewer processors than ranks.",
    "howto/reading-a-prediction.md",
)
OUTSIDE_INTERVAL = Entry(
    "outside-interval",
    "the measured time is outside of the 90 % interval of the models at {points}, most at {where}: measured "
    "{measured}, models {interval}. Predictions may have an error of the same size",
    "The error of the models at these points is larger than their interval. Possible reasons: the machine was loaded, "
    "or the program behaves differently there. Measure these points again, or look at the largest call paths with "
    "quipu show.",
    "howto/reading-a-prediction.md",
)
UPPER_BOUNDS = Entry(
    "upper-bounds",
    "sums of call paths are upper bounds: the slowest rank can differ between call paths",
    "With --over-ranks max each call path has the value of its slowest rank. If this rank differs between call paths, "
    "their sum is larger than the time of any rank.",
    "howto/reading-a-prediction.md",
)
SLOWEST_RANK = Entry(
    "slowest-rank",
    "slowest rank: {text}",
    "The slowest rank determines the time of the program, but the values here are means over the ranks. Use "
    "--over-ranks max for the slowest rank of each call path. quipu diagnose shows which call paths of which ranks "
    "the other ranks wait for.",
    "howto/waiting.md",
)
OVERSUBSCRIBED_POINTS = Entry(
    "oversubscribed-points",
    "oversubscribed (more ranks than processors): {points}. Models of time do not use these points, except models "
    "with too few other points, which have a note",
    "Ranks that share a processor wait for each other, so that times are too long. Counts and messages are not "
    "affected.",
    "concepts.md",
)
OVERSUBSCRIBED_MODELS = Entry(
    "oversubscribed-models",
    "oversubscribed (more ranks than processors): {points}. All models of time depend on these points: measure with "
    'a processor for each rank, or simulate the ranks (launcher = "smpi")',
    "Ranks that share a processor wait for each other, so that all times, and all predictions of time, are too long. "
    "Counts and messages are not affected.",
    "concepts.md",
)
OVERSUBSCRIBED_RUN = Entry(
    "oversubscribed-run",
    "{subject} had more ranks or threads than processors (oversubscribed): its times contain waiting for a processor",
    "Ranks that share a processor wait for each other, so that times are too long. Counts and messages are not "
    "affected. Start fewer ranks, or simulate them with --launcher smpi.",
    "concepts.md",
)
LOADED_RUN = Entry(
    "loaded-run",
    "{subject} ran while other programs used processors that its ranks needed: its times contain waiting for a "
    "processor",
    "Times contain the time that ranks waited for a processor. Counts and messages are not affected. Stop the other "
    "programs and measure again.",
    "concepts.md",
)
DECIDING_RUN = Entry(
    "deciding-run",
    "{apart}. A count-only run with {work} of the work at this point shows which formula holds: {run}",
    "All measured counts fit two formulas that differ at the point, and the prediction uses the more probable one. "
    "The printed command measures a small run for which the formulas differ.",
    "howto/reading-a-prediction.md#when-several-formulas-fit-the-counts",
)
UNDECIDED_FORMULAS = Entry(
    "undecided-formulas",
    "{apart}. No run with less than half of the work at this point shows which formula holds",
    "All measured counts fit two formulas that differ at the point, and the prediction uses the more probable one. "
    "Only a run almost as large as the point would show which formula holds.",
    "howto/reading-a-prediction.md#when-several-formulas-fit-the-counts",
)
NOT_SEPARATED = Entry(
    "not-separated",
    "serialization and transfer are not separated, because waiting in collective operations was not measured. Measure "
    "with quipu run --mpi-wait all, or give a simulation with --ideal-network",
    "Communication efficiency is serialization efficiency times transfer efficiency. Serialization efficiency contains "
    "the waiting for other ranks, and transfer efficiency contains the time of the network.",
    "howto/efficiency.md",
)
NO_CYCLES = Entry(
    "no-cycles",
    "IPC and frequency are not separated: measure with quipu run --counters cycles,instructions",
    "Instructions per second are IPC times frequency. Cache misses reduce the IPC, and load on other cores of the "
    "processor reduces the frequency.",
    "howto/efficiency.md",
)
UNKNOWN_RANKS = Entry(
    "unknown-ranks",
    "the archive of {runs} contains no values of single ranks, so that load balance and communication efficiency are "
    "given as bounds. quipu run --rank-columns keeps the values of all ranks",
    "For more than 256 ranks an archive contains statistics over the ranks instead of the values of each rank.",
    "howto/efficiency.md",
)

ENTRIES = tuple(entry for entry in list(globals().values()) if isinstance(entry, Entry))
"""All messages of this part."""
