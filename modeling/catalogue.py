# SPDX-License-Identifier: Apache-2.0
"""The messages that modeling shows to users, each with a code (message.py)."""

from __future__ import annotations

from .message import Entry

COUNTS_VARY = Entry(
    "counts-vary",
    "repetitions of this count differ by {percent:.2g} %: the work depends on the data or on chance",
    "This count differs between repetitions of the same configuration. No formula reproduces it exactly, and the "
    "interval of a prediction is wider. If the work depends on the data, use different data in each repetition: then "
    "the repetitions show how much the count varies.",
    "simulation.md#work-that-depends-on-data",
)
COUNTS_MISSED = Entry(
    "counts-missed",
    "differs from the counts by {percent:.2g} %: no candidate function reproduces them",
    "The model is the candidate function closest to the counts; the number is its mean deviation. Expect predictions "
    "with at least this error. Usual reasons: the iterations of a solver, or work that depends on data.",
    "modeling.md",
)
TIMES_MISSED = Entry(
    "times-missed",
    "differs from the measured values by {percent:.2g} %, and noise between repetitions explains only {noise:.2g} %: "
    "the function has the wrong shape",
    "The deviations from the model are larger than the noise between repetitions, so that the model lacks an effect. "
    "Measure more values of the parameters, or look at the plot of this call path in the report.",
    "modeling.md",
)
TIMES_SCATTER = Entry(
    "times-scatter",
    "repetitions scatter by {percent:.0f} %: measure more repetitions before you rely on this model",
    "Runs with the same parameters take different times, usually because of other load on the machine or waiting in "
    "MPI. More repetitions, or a machine without other load, improve the model and its interval.",
    "concepts.md",
)
NOT_EXECUTED = Entry(
    "not-executed",
    "not executed {where}",
    "The program did not execute the call path in some configurations. The formula holds for all other "
    "configurations. The prediction is 0 where the parameter has one of the named values.",
    "modeling.md",
)
ONE_VALUE = Entry(
    "one-value",
    "only one value of {name} was measured: its effect is not determined",
    "All runs with this call path have the same value of the parameter, so that the model does not depend on it. "
    "Measure further values of the parameter before you predict for another value.",
    "modeling.md",
)
CHANGE_TOGETHER = Entry(
    "change-together",
    "{names} change together: their separate effects are not determined",
    "In all runs these parameters grow together, so that several formulas fit equally well. Measure points that differ "
    "in only one of these parameters.",
    "modeling.md",
)
FEW_GRIDS = Entry(
    "few-grids",
    "the formula has almost as many functions of the process grid as numbers of processes were measured: the fit may "
    "be a coincidence",
    "The formula is a sum of functions of the process grid. So few numbers of processes were measured that such a sum "
    "would fit almost any counts. Measure more numbers of processes.",
    "design/counts.md",
)
TOO_FEW_GRIDS = Entry(
    "too-few-grids",
    "the formula has as many functions of the process grid as numbers of processes were measured: no measurement "
    "confirms it",
    "With as many functions as numbers of processes, some sum always fits. The prediction for other numbers of "
    "processes is uncertain, and its interval is wide. Measure more numbers of processes.",
    "design/counts.md",
)
LONG_GRIDS = Entry(
    "long-grids",
    "the coefficients of the functions of the process grid have as many digits as the counts: the fit may be a "
    "coincidence",
    "A formula that is as long as the counts that it reproduces explains nothing. Measure more numbers of processes.",
    "design/counts.md",
)
LOADED_MACHINE = Entry(
    "loaded-machine",
    "other programs used processors that the ranks needed during all runs of {loaded} of {points}. Models of time use "
    "these points only where too few others exist; measure again on a machine without other load",
    "Times of these runs contain waiting for a processor. Counts are not affected.",
    "concepts.md",
)
NEGATIVE_VALUES = Entry(
    "negative-values",
    "{metric}: {values} below 0, for example of {path} at {point}. Check these values: the models are fitted to them",
    "Quipu never measures a negative value, but a file of another tool may contain some.",
    "formats.md",
)
EMPTY_EXPERIMENT = Entry(
    "empty-experiment",
    "experiment {name} is empty: it has no call paths or no configurations",
    "There is nothing to model. Check that the folder or file is the right one, and that the program was built with "
    "the wrappers or calls MPI.",
    "questions.md",
)
UNKNOWN_METRIC = Entry(
    "unknown-metric",
    "{name} has no models of metric {metric!r}; choose one of: {known}",
    "The runs do not contain this metric. Some metrics need an option of the measurement, such as --memory, --files "
    "or --counters.",
    "reference/metrics.md",
)
NOT_MEASURED = Entry(
    "not-measured",
    "{subject} has no metric {metric!r}; choose one of: {known}",
    "The runs do not contain this metric. Some metrics need an option of the measurement, such as --memory, --files "
    "or --counters; counts need a program that the wrappers built.",
    "reference/metrics.md",
)
BLIND_POINTS = Entry(
    "blind-points",
    "the diagnosis does not use {points}, because their ranks waited for processors (more ranks than processors, or "
    "other programs): measure again with a free processor for each rank",
    "The diagnosis compares times with effort, and waiting for a processor would look like a slowdown of the program. "
    "Measure with a processor for each rank, or simulate the ranks.",
    "design/diagnosis.md",
)
BLIND_PARAMETERS = Entry(
    "blind-parameters",
    "measure at least {least} values of {names}, {where}: with fewer values, slowdowns are not found",
    "With fewer values a slowdown cannot be distinguished from noise. Keep all other parameters equal for these "
    "measurements.",
    "design/diagnosis.md",
)
NO_EFFORT = Entry(
    "no-effort",
    "{what} take {share} of the time ({regions}): {advice}",
    "The diagnosis compares time with effort, and these call paths have no effort. Their time may grow without a "
    "finding.",
    "design/diagnosis.md",
)
OVERSUBSCRIBED_KERNELS = Entry(
    "oversubscribed-kernels",
    "{points} had more ranks than processors, so their times contain waiting for a processor: {used}",
    "Counts are not affected. Measure with a processor for each rank, or simulate the ranks.",
    "kernels.md",
)
NO_PROCESSES = Entry(
    "no-processes",
    "no parameter is the number of processes: name it with --processes if one is",
    "Without this parameter the problem size per process is not known, and models of communication do not depend on "
    "the number of processes.",
    "kernels.md",
)
NO_INSTRUCTIONS = Entry(
    "no-instructions",
    "no instructions were counted, so the limits of functions are not determined: build with the compiler wrappers "
    "(quipu-cc), or measure with quipu run --counters instructions",
    "Computation is modeled by time alone.",
    "kernels.md",
)
NO_MACHINE = Entry(
    "no-machine",
    "no machine is given, so the time of memory accesses is part of computation. Measure the machine with quipu "
    "machine -o FILE, then give --machine FILE",
    "The time of memory accesses is computed from the latencies of the machine.",
    "kernels.md",
)
NO_ACCESSES = Entry(
    "no-accesses",
    "accesses to caches were not counted, so the time of memory accesses is part of computation: measure with quipu "
    "run --counters reuse",
    "The time of memory accesses is computed from the number of accesses to each cache level.",
    "kernels.md",
)
MEMORY_CONTENTION = Entry(
    "memory-contention",
    "{kernels}: {part} of the accesses miss the last-level cache (E above {limit:g}): memory contention is visible, "
    "and may grow with larger problems",
    "Accesses to main memory share its bandwidth. The models contain the contention of the measured sizes only.",
    "kernels.md",
)

ENTRIES = tuple(entry for entry in list(globals().values()) if isinstance(entry, Entry))
"""All messages of this part."""
