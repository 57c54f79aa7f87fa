# SPDX-License-Identifier: Apache-2.0
"""The messages of modeling, by code."""

from __future__ import annotations

from .message import Entry

COUNTS_VARY = Entry(
    "counts-vary",
    "repetitions of this count differ by {percent:.2g} %: the work depends on the data or on chance",
    "A count should be the same in every repetition. Here it is not, so that no formula reproduces it exactly and "
    "the interval of a prediction is wider. Give each repetition other data if the work depends on them, so that the "
    "model sees how much the count varies.",
    "simulation.md#data-that-decide-what-is-done",
)
COUNTS_MISSED = Entry(
    "counts-missed",
    "misses the counts by {percent:.2g} %: no function that is tried reproduces them",
    "The model is the nearest function, and measured counts are off by so much on average. Expect predictions to be "
    "off by as much or more. Counts of an iterative solver, or of work that depends on data, are usual reasons.",
    "modeling.md",
)
TIMES_MISSED = Entry(
    "times-missed",
    "misses the measured values by {percent:.2g} %, and repetitions explain {noise:.2g} %: the values have another "
    "form",
    "The measured values scatter less than they are away from the model, so that the model lacks something. Measure "
    "more values of the parameters, or look at the plot of this call path in the report.",
    "modeling.md",
)
TIMES_SCATTER = Entry(
    "times-scatter",
    "repetitions scatter by {percent:.0f} %: measure more of them before you rely on this model",
    "Runs with the same parameters take different times, usually because of other load on the machine or waiting in "
    "MPI. More repetitions, or a quiet machine, make the model and its interval better.",
    "concepts.md",
)
NOT_EXECUTED = Entry(
    "not-executed",
    "not executed {where}",
    "The call path did not occur in some configurations. The formula holds for the others, and the prediction is 0 "
    "where the parameter has one of the named values.",
    "modeling.md",
)
ONE_VALUE = Entry(
    "one-value",
    "one value of {name}: how it matters is not known",
    "All runs with this call path have the same value of the parameter, so that the model cannot contain it. Measure "
    "other values of the parameter before you predict another one.",
    "modeling.md",
)
CHANGE_TOGETHER = Entry(
    "change-together",
    "{names} change together: their effects cannot be distinguished",
    "In all runs these parameters grow together, so that many formulas fit equally well. Measure points at which one "
    "of them changes alone.",
    "modeling.md",
)
LEFT_OUT_POINT = Entry(
    "left-out-point",
    "without {point}",
    "One point does not follow the formula that reproduces all other counts exactly. The formula was made without "
    "it, and its interval is wider. Measure the point again, or its neighbours.",
    "modeling.md",
)
LEFT_OUT_COUNT = Entry(
    "left-out-count",
    "{counted:.6g} was counted there, and this formula gives {expected:.6g}",
    "One point does not follow the formula that reproduces all other counts exactly. The formula was made without "
    "it, and its interval is wider. Measure the point again, or its neighbours.",
    "modeling.md",
)
FEW_GRIDS = Entry(
    "few-grids",
    "there are hardly more numbers of processes than functions of the grid: a coincidence is likely",
    "A sum of functions of the process grid fits the counts, but so few numbers of processes were measured that "
    "other counts would be fitted, too. Measure more numbers of processes.",
    "design/counts.md",
)
TOO_FEW_GRIDS = Entry(
    "too-few-grids",
    "there are as many functions of the grid as numbers of processes: nothing confirms them",
    "With as many functions as numbers of processes, some sum always fits. The prediction for other numbers of "
    "processes is a guess, which the interval shows. Measure more numbers of processes.",
    "design/counts.md",
)
LONG_GRIDS = Entry(
    "long-grids",
    "the functions of the grid need as many digits as the counts that they reproduce: a coincidence is likely",
    "The formula is as long as the numbers that it describes, so that it explains nothing. Measure more numbers of "
    "processes.",
    "design/counts.md",
)
LOADED_MACHINE = Entry(
    "loaded-machine",
    "all runs of {loaded} of {points} were made while other programs used processors that the ranks needed, and "
    "models of time leave these out where enough others exist. Measure again on a machine without other load",
    "Times of these runs contain waiting for a processor. Counts are not affected.",
    "concepts.md",
)
NEGATIVE_VALUES = Entry(
    "negative-values",
    "{metric}: {values} below 0, such as that of {path} at {point}. Check them: the models follow them",
    "No measurement of Quipu is negative, but a file of another tool may contain such values.",
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
    "{name}: no models of metric {metric!r}; there are models of: {known}",
    "The runs do not contain this metric. Some metrics need an option of the measurement, such as --memory, --files "
    "or --counters.",
    "reference/metrics.md",
)
NOT_MEASURED = Entry(
    "not-measured",
    "{subject} has no metric {metric!r}; it has: {known}",
    "The runs do not contain this metric. Some metrics need an option of the measurement, such as --memory, --files "
    "or --counters; counts need a program that the wrappers built.",
    "reference/metrics.md",
)
BLIND_POINTS = Entry(
    "blind-points",
    "{points} are left out: they had more ranks than processors, so that their times contain waiting for one",
    "The diagnosis compares times with effort, and waiting for a processor would look like a slowdown of the program. "
    "Measure with a processor for each rank, or simulate the ranks.",
    "design/diagnosis.md",
)
BLIND_PARAMETERS = Entry(
    "blind-parameters",
    "{names}: measure at least {least} values of {each}, {where}, to see what grows with {it}",
    "With fewer values a slowdown cannot be distinguished from noise. The values must be measured with all other "
    "parameters equal.",
    "design/diagnosis.md",
)
NO_EFFORT = Entry(
    "no-effort",
    "{share} of the time is of {what} ({regions}): {advice}",
    "A diagnosis compares time with effort, and these call paths have none. Their time may grow without a finding.",
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
    "Without it, the problem size of a process is not known, and communication is modeled without the ranks.",
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
    "no machine is given, so memory is part of computation: quipu machine -o FILE, then --machine FILE",
    "The time of memory accesses needs the latencies of the machine.",
    "kernels.md",
)
NO_ACCESSES = Entry(
    "no-accesses",
    "accesses to caches were not counted, so memory is part of computation: quipu run --counters reuse",
    "The time of memory accesses needs their number in each level of the caches.",
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
