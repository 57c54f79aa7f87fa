# SPDX-License-Identifier: Apache-2.0
"""The messages of measuring, campaigns and commands, by code."""

from __future__ import annotations

from quipu.modeling.message import Entry

NOT_INSTRUMENTED = Entry(
    "not-instrumented",
    "{program} was not built with the compiler wrappers and does not use MPI: only what it loads or starts can be "
    "measured. Build it with the wrappers (quipu-cc), or sample its functions (--functions)",
    "Quipu counts in programs that its wrappers compiled, and in MPI calls. This program has neither, so that the "
    "run will most likely contain nothing.",
    "howto/programs.md",
)
MORE_RANKS = Entry(
    "more-ranks",
    "{ranks} on {processors}: times will contain waiting for a processor. Effort and messages are exact all the "
    "same; for time, start fewer, or simulate them with --launcher smpi",
    "Ranks or threads that share a processor wait for each other. Use quipu run --counts if you need the counts of "
    "many ranks only.",
    "howto/many-ranks.md",
)
BUSY_MACHINE = Entry(
    "busy-machine",
    "other programs use {load:.1f} of {processors}, and the program needs {needed}: times will contain waiting for a "
    "processor. Stop the other programs, or measure later",
    "Times and models of time would describe this load as well as the program. Counts and messages are exact all the "
    "same.",
    "concepts.md",
)
MORE_RANKS_IN_CAMPAIGN = Entry(
    "more-ranks-in-campaign",
    "{many} of {points} points have more ranks or threads than the {processors} processors of this machine "
    "({names}), so that models of time leave them out or are marked. For time, measure at most {processors} ranks "
    'here, or simulate more (launcher = "smpi")',
    "Times at these points will contain waiting for a processor. Effort and messages are exact all the same, and "
    "predictions of them use all points.",
    "howto/many-ranks.md",
)
NO_PROFILE = Entry(
    "no-profile",
    "{ended}, but {nobody}. {likely}; the raw folder is kept: {folder}",
    "Nothing was measured. The usual causes: the program was not built with the wrappers, its MPI is linked "
    "statically, or the launcher started another program than the one you built.",
    "questions.md",
)
NO_RANK_STARTED = Entry(
    "no-rank-started",
    "{why} before any rank was started; its own messages above say why",
    "The launcher (mpirun, srun) failed, not the program. Run the same command without quipu run first.",
    "questions.md",
)
NUMBERS_MISSING = Entry(
    "numbers-missing",
    "{program} ended well, but numbers are missing: {problems}; {archive} is marked partial",
    "Some process left no complete profile, for example because it was killed or a disk was full. Models do not use "
    "partial runs; repeat the run.",
    "design/durability.md",
)
RUN_FAILED = Entry(
    "run-failed",
    "{trouble}; what was counted until then is in {archive}, marked partial",
    "The program did not end well. quipu show prints what it had done until then; models do not use partial runs.",
    "design/durability.md",
)
NOTHING_STARTED = Entry(
    "nothing-started",
    "{reason} (nothing was started)",
    "The launch was refused before the program started, so that nothing was measured and nothing was left behind.",
    "questions.md",
)
NO_SUCH_EXPERIMENT = Entry(
    "no-such-experiment",
    "there is no such experiment: give a folder of runs, or a file of Extra-P",
    "The path does not exist. quipu run and quipu campaign print the folder that they write to; without -o it is "
    "quipu-runs.",
    "questions.md",
)
NO_SUCH_FOLDER = Entry(
    "no-such-folder",
    "there is no such folder",
    "The path does not exist. quipu run and quipu campaign print the folder that they write to; without -o it is "
    "quipu-runs.",
    "questions.md",
)
HOLDS_MODELS = Entry(
    "holds-models",
    "holds models, not measurements: give the experiment that they were made from",
    "The file was written by quipu model -o. quipu predict reads it; commands that need measurements do not.",
    "modeling.md",
)
SAMPLED_EXCESS = Entry(
    "sampled-excess",
    "effort_excess is an estimate: {part} of the collective operations were probed; it is exact with "
    "quipu run --mpi-wait all",
    "Blocks between two collective operations are known where both were probed. The others are estimated from these, "
    "so that the metric differs between runs.",
    "design/mpi-waiting.md#blocks-that-ranks-wait-for",
)
NO_RUNS = Entry(
    "no-runs",
    "holds no run archive; measure first: quipu run -o {folder} --param … -- mpirun …",
    "The folder exists, but no run was stored in it. Check that it is the folder that -o named, or measure now.",
    "questions.md",
)
OTHER_PARAMETERS = Entry(
    "other-parameters",
    "{folder}: the runs do not have the same parameters: {first} has {names}, {other} has {others}; keep runs of "
    "different experiments in different folders",
    "All runs of an experiment must name the same parameters with --param, or models would mix different things. "
    "Move the runs that do not belong to the experiment.",
    "questions.md",
)
NOT_ALIKE = Entry(
    "not-alike",
    "{groups} were not measured alike ({what})",
    "The program, its build, the command or the machine changed between these runs. They were mixed because --mixed "
    "allows it.",
    "compare.md",
)
MIXED_RUNS = Entry(
    "mixed-runs",
    "{folder}: {groups} were not measured alike ({what}). Measure again (quipu campaign does that), move one group "
    "to another folder, or allow it with --mixed",
    "The program, its build, the command or the machine changed between these runs. One model of both would describe "
    "neither.",
    "compare.md",
)
DEVIATING_RUN = Entry(
    "deviating-run",
    "{run} took {times:.2g} times the median of its {repetitions} repetitions ({own:.3g} ms, median {median:.3g} ms)",
    "One run is far from the others with the same parameters, usually because of load on the machine. Trees and "
    "models use the median; measure the point again if several runs deviate.",
    "concepts.md",
)
COSTLY_MEASURING = Entry(
    "costly-measuring",
    "measuring was {percent:.0f} % of the time of {run}: see quipu show {path}",
    "Small functions were called so often that measuring them dominates their time. Reduce the overhead with a "
    "filter: quipu filter --overhead writes it.",
    "howto/overhead.md",
)
UNKNOWN_PARAMETER = Entry(
    "unknown-parameter",
    "{option}: no parameter {names} in this experiment; it has: {known}",
    "The runs were not measured with --param of this name, so that no model contains it.",
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
    "Everything after -- is started as you would type it without Quipu, with the launcher and the arguments of the "
    "program.",
    "tutorial.md",
)
BAD_ASSIGNMENT = Entry(
    "bad-assignment",
    "{option} {text!r}: write NAME=NUMBER, such as {option} p=4",
    "A parameter has a name (letters, digits and _) and a number. Several are separated by commas, or the option is "
    "repeated.",
    "tutorial.md",
)
NOTHING_FITS = Entry(
    "nothing-fits",
    "nothing fits --path {pattern}: a pattern is of a whole name, * fits anything",
    "The pattern is compared with the whole call path (main->solve) and with the whole name of a region (solve). Put "
    "* where the name may go on.",
    "questions.md",
)

ENTRIES = tuple(entry for entry in list(globals().values()) if isinstance(entry, Entry))
"""All messages of this part."""
