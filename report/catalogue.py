# SPDX-License-Identifier: Apache-2.0
"""The messages of views, by code."""

from __future__ import annotations

from quipu.modeling.message import Entry

BEYOND_MEASURED = Entry(
    "beyond-measured",
    "extrapolation: {parts}",
    "The point lies outside of the measured range, so that the prediction rests on the formula alone. Up to 16 times "
    "beyond, predictions and their intervals are checked on programs that were measured there.",
    "howto/reading-a-prediction.md",
)
FAR_BEYOND = Entry(
    "far-beyond",
    "far extrapolation: {parts}. Predictions and their intervals are checked up to {far:g} times beyond, so measure "
    "nearer to the point if you can",
    "The point is so far outside of the measured range that no benchmark of Quipu covers it. A small term that no "
    "measurement shows can dominate there. Measure larger values of the parameters; a count-only run (quipu run "
    "--counts) needs no processor for each rank.",
    "howto/reading-a-prediction.md",
)
OUTSIDE_INTERVAL = Entry(
    "outside-interval",
    "the measured time is outside of the 90 % interval of the models at {points}, most at {where}: measured "
    "{measured}, models {interval}. Predictions may be off by as much",
    "The models do not describe these runs as well as they claim, for example because the machine was loaded or the "
    "program changes its behaviour there. Measure these points again, or look at the largest call paths with quipu "
    "show.",
    "howto/reading-a-prediction.md",
)
UPPER_BOUNDS = Entry(
    "upper-bounds",
    "sums of call paths are upper bounds: the largest values of call paths may be of different ranks",
    "With --over-ranks max each call path has the value of its slowest rank, which may be another rank for each. "
    "Their sum can be larger than the time of any rank.",
    "howto/reading-a-prediction.md",
)
SLOWEST_RANK = Entry(
    "slowest-rank",
    "slowest rank: {text}",
    "The program is as fast as its slowest rank, and values here are means over the ranks. Use --over-ranks max for "
    "the slowest rank of each call path, and quipu diagnose to see whom the others wait for.",
    "howto/waiting.md",
)
OVERSUBSCRIBED_POINTS = Entry(
    "oversubscribed-points",
    "oversubscribed (more ranks than processors): {points}. Models of time leave them out where enough others were "
    "measured, and are marked where not",
    "Ranks that share a processor wait for each other, so that times are too long. Counts and messages are not "
    "affected.",
    "concepts.md",
)
OVERSUBSCRIBED_MODELS = Entry(
    "oversubscribed-models",
    "oversubscribed (more ranks than processors): {points}. All models of time rest on them: measure with a "
    'processor for each rank, or simulate the ranks (launcher = "smpi")',
    "Ranks that share a processor wait for each other, so that all times, and all predictions of time, are too long. "
    "Counts and messages are not affected.",
    "concepts.md",
)
OVERSUBSCRIBED_RUN = Entry(
    "oversubscribed-run",
    "{subject} had more ranks or threads than processors (oversubscribed), so that its times contain waiting for one",
    "Ranks that share a processor wait for each other, so that times are too long. Counts and messages are not "
    "affected. Start fewer ranks, or simulate them with --launcher smpi.",
    "concepts.md",
)
LOADED_RUN = Entry(
    "loaded-run",
    "{subject} was made while others used processors that its ranks needed, so that its times contain waiting for one",
    "Times are too long by the time that ranks waited for a processor. Counts and messages are not affected. Stop "
    "the other programs and measure again.",
    "concepts.md",
)
DECIDING_RUN = Entry(
    "deciding-run",
    "{apart}. A run that only counts decides, with {work} of the work at this point: {run}",
    "All measured counts fit two formulas that differ at the point, and the prediction follows the likelier one. The "
    "printed command measures a small run at which the formulas differ.",
    "howto/reading-a-prediction.md#when-several-formulas-fit-the-counts",
)
UNDECIDED_FORMULAS = Entry(
    "undecided-formulas",
    "{apart}. No run with less than half of the work at this point decides",
    "All measured counts fit two formulas that differ at the point, and the prediction follows the likelier one. "
    "Only a run almost as large as the point would show which one holds.",
    "howto/reading-a-prediction.md#when-several-formulas-fit-the-counts",
)
NOT_SEPARATED = Entry(
    "not-separated",
    "serialization and transfer are not separated: waiting in collective operations was not measured; measure with "
    "quipu run --mpi-wait all, or give a simulation with --ideal-network",
    "Communication efficiency is the product of both factors. Serialization is waiting for other ranks, and transfer "
    "is the time of the network.",
    "howto/efficiency.md",
)
NO_CYCLES = Entry(
    "no-cycles",
    "IPC and frequency are not separated: measure with quipu run --counters cycles,instructions",
    "Instructions per second is the product of both. IPC falls with misses of caches, frequency with the load of the "
    "processor.",
    "howto/efficiency.md",
)
UNKNOWN_RANKS = Entry(
    "unknown-ranks",
    "single ranks of {runs} are not known: load balance and communication efficiency are between bounds (quipu run "
    "--rank-columns keeps the ranks)",
    "Above 256 ranks an archive contains statistics over the ranks instead of their values.",
    "howto/efficiency.md",
)

ENTRIES = tuple(entry for entry in list(globals().values()) if isinstance(entry, Entry))
"""All messages of this part."""
