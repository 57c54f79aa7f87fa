# SPDX-License-Identifier: Apache-2.0
"""The messages of measuring, campaigns and commands, each with a code for `quipu explain`."""

from __future__ import annotations

from quipu.modeling.message import Entry

NOT_INSTRUMENTED = Entry(
    "not-instrumented",
    "{program} was not built with the compiler wrappers and does not use MPI: only libraries that it loads and "
    "programs that it starts can be measured. Build it with the wrappers (quipu-cc), or sample its functions "
    "(--functions)",
    "Quipu measures functions that its wrappers compiled, and MPI calls. This program contains neither, so that the "
    "run will most likely be empty.",
    "howto/programs.md",
)
MORE_RANKS = Entry(
    "more-ranks",
    "{ranks} on {processors}: times will contain waiting for a processor, but effort and messages are exact. For "
    "time, start fewer ranks or threads, or simulate the ranks with --launcher smpi",
    "Ranks or threads that share a processor wait for each other. If you need only the counts of many ranks, use "
    "quipu run --counts.",
    "howto/many-ranks.md",
)
BUSY_MACHINE = Entry(
    "busy-machine",
    "other programs use {load:.1f} of {processors}, and the program needs {needed}: times will contain waiting for a "
    "processor. Stop the other programs, or measure later",
    "Times, and models of time, would contain the effect of this load. Counts and messages are exact.",
    "concepts.md",
)
MORE_RANKS_IN_CAMPAIGN = Entry(
    "more-ranks-in-campaign",
    "{many} of {points} points have more ranks or threads than the {processors} processors of this machine "
    "({names}). Models of time use these points only where too few others exist; for time, measure at most "
    '{processors} ranks here, or simulate more (launcher = "smpi")',
    "Times at these points will contain waiting for a processor. Effort and messages are exact, and models of them "
    "use all points.",
    "howto/many-ranks.md",
)
NO_PROFILE = Entry(
    "no-profile",
    "{ended}, but {missing}. {cause}; the raw folder is kept: {folder}",
    "Nothing was measured. The usual causes: the program was not built with the wrappers, its MPI is linked "
    "statically, or the launcher started another program.",
    "questions.md",
)
NO_RANK_STARTED = Entry(
    "no-rank-started",
    "{why} before any rank was started; its messages above contain the reason",
    "The launcher (mpirun, srun) failed, not the program. Run the same command without quipu run first.",
    "questions.md",
)
NUMBERS_MISSING = Entry(
    "numbers-missing",
    "{program} ended without an error, but parts of the measurement are missing: {problems}; {archive} is marked "
    "partial",
    "A process left no complete profile, for example because it was killed or a disk was full. Models do not use "
    "partial runs. Repeat the run.",
    "design/durability.md",
)
RUN_FAILED = Entry(
    "run-failed",
    "{trouble}; the measurements until then are in {archive}, marked partial",
    "The program failed or was stopped. quipu show prints the measurements until then. Models do not use partial runs.",
    "design/durability.md",
)
NOTHING_STARTED = Entry(
    "nothing-started",
    "{reason} (nothing was started)",
    "Quipu refused the launch before the program started. Nothing was measured, and no files were written.",
    "questions.md",
)
NO_SUCH_EXPERIMENT = Entry(
    "no-such-experiment",
    "the experiment does not exist: give a folder of runs, or a file of Extra-P",
    "The path does not exist. quipu run and quipu campaign print the folder that they write to; without -o it is "
    "quipu-runs.",
    "questions.md",
)
NO_SUCH_FOLDER = Entry(
    "no-such-folder",
    "the file or folder does not exist: check the name",
    "The path does not exist. quipu run and quipu campaign print the folder that they write to; without -o it is "
    "quipu-runs.",
    "questions.md",
)
HOLDS_MODELS = Entry(
    "holds-models",
    "contains models, not measurements: give the experiment that was modeled",
    "The file was written by quipu model -o. Only quipu predict, model and filter read this file.",
    "modeling.md",
)
SAMPLED_EXCESS = Entry(
    "sampled-excess",
    "effort_excess is an estimate: {part} of the collective operations were probed; it is exact with "
    "quipu run --mpi-wait all",
    "The blocks between two collective operations are known if both operations were probed. All other blocks are "
    "estimated from the known ones, so that the metric differs between runs.",
    "design/mpi-waiting.md#blocks-that-ranks-wait-for",
)
NO_RUNS = Entry(
    "no-runs",
    "contains no run archive; measure first: quipu run -o {folder} --param … -- mpirun …",
    "The folder exists, but contains no measured run. Check that it is the folder that you gave to -o, or measure now.",
    "questions.md",
)
OTHER_PARAMETERS = Entry(
    "other-parameters",
    "{folder}: the runs do not have the same parameters: {first} has {names}, {other} has {others}; keep runs of "
    "different experiments in different folders",
    "All runs of an experiment must have the same parameters (option --param). Move the runs that do not belong to the "
    "experiment to another folder.",
    "questions.md",
)
NOT_ALIKE = Entry(
    "not-alike",
    "{groups} were measured under different conditions ({what})",
    "The program, its build, the command or the machine changed between these runs. They are used together because "
    "of --mixed.",
    "compare.md",
)
MIXED_RUNS = Entry(
    "mixed-runs",
    "{folder}: {groups} were measured under different conditions ({what}). Measure again (quipu campaign does that), "
    "move one group to another folder, or use all of them with --mixed",
    "The program, its build, the command or the machine changed between these runs. A model of all of them would "
    "describe no state of the program correctly.",
    "compare.md",
)
DEVIATING_RUN = Entry(
    "deviating-run",
    "{run} took {times:.2g} times the median of its {repetitions} repetitions ({own:.3g} ms, median {median:.3g} ms)",
    "The time of this run differs much from the other runs with the same parameters, usually because of load on the "
    "machine. Views and models use the median. Measure the point again if several runs deviate.",
    "concepts.md",
)
COSTLY_MEASURING = Entry(
    "costly-measuring",
    "measuring took {percent:.0f} % of the time of {run}: see quipu show {path}",
    "Small functions were called so often that their measured times are mainly overhead. Exclude them with a filter: "
    "quipu filter --overhead writes one.",
    "howto/overhead.md",
)
UNKNOWN_PARAMETER = Entry(
    "unknown-parameter",
    "{option}: no parameter {names} in this experiment; it has: {known}",
    "The runs were measured without this parameter (option --param), so that no model depends on it.",
    "questions.md",
)
MISSING_VALUE = Entry(
    "missing-value",
    "{option}: no value for {names}; write {option} {example}",
    "A prediction needs a value for every parameter of the experiment.",
    "howto/reading-a-prediction.md",
)
NO_PROGRAM = Entry(
    "no-program",
    "no program: write the launch command after --, such as: quipu run -- mpirun -n 4 ./app",
    "Quipu starts everything after -- as a command: the launcher, the program and its arguments, as you type it "
    "without Quipu.",
    "tutorial.md",
)
BAD_ASSIGNMENT = Entry(
    "bad-assignment",
    "{option} {text!r}: write NAME=NUMBER, such as {option} p=4",
    "A parameter has a name (letters, digits and _) and a number. For several parameters, separate them by commas or "
    "repeat the option.",
    "tutorial.md",
)
NOTHING_FITS = Entry(
    "nothing-fits",
    "no call path matches --path {pattern}: write the whole name, or put * for any part of it",
    "The pattern must match the whole call path (main->solve) or the whole name of a region (solve). The character * "
    "matches any text.",
    "questions.md",
)

ENTRIES = tuple(entry for entry in list(globals().values()) if isinstance(entry, Entry))
"""All messages of this part."""
