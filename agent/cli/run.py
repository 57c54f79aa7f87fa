# SPDX-License-Identifier: Apache-2.0
"""`quipu run`: launch a program under measurement, once per repetition."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from quipu.modeling.errors import UsageError

from ..catalogue import NO_PROGRAM
from ..load.measurements import read_machine
from .options import RANK_COLUMNS, parse_assignments
from .output import say, show_json, stdout_for_json
from .quick_numpy import load_numpy

if TYPE_CHECKING:
    from ..archive.run import RunArchive

# Settings of click: all words after the first word that is not an option belong to the command of the program.
CONTEXT = {"allow_interspersed_args": False, "ignore_unknown_options": False}


def command(
    *,
    program: list[str] = typer.Argument(
        None, metavar="-- COMMAND", help="The launch command, as you type it without Quipu."
    ),
    param: list[str] = typer.Option(
        [], "--param", "-p", metavar="NAME=NUMBER", help="Parameter of this configuration; repeat for each."
    ),
    repetitions: int = typer.Option(1, "--rep", "-r", min=1, metavar="N", help="Number of repetitions."),
    output: Path = typer.Option(
        Path("quipu-runs"), "--output", "-o", metavar="DIR", help="Experiment folder for the run archives."
    ),
    filter_file: Path = typer.Option(
        None, "--filter", metavar="FILE", help="Score-P filter file: measure only the regions that it includes."
    ),
    counts: bool = typer.Option(
        False,
        "--counts",
        help="Count only effort and communication, without times; allows more ranks than processors.",
    ),
    python: bool = typer.Option(False, "--python", help="Also measure the functions of a Python program."),
    mpi_wait: str = typer.Option(
        None,
        "--mpi-wait",
        metavar="off|local|sample|all",
        help="How waiting in MPI is separated from transfer: by barriers before sampled or all collectives, without "
        "barriers (local), or not at all. [default: local]",
    ),
    rank_columns: int = typer.Option(None, "--rank-columns", min=0, metavar="N", help=RANK_COLUMNS),
    reduce: bool = typer.Option(
        None,
        "--mpi-reduce/--no-mpi-reduce",
        help="Reduce the profiles of the ranks in MPI_Finalize. [default: if all ranks run the same program]",
    ),
    launcher: str = typer.Option(
        None, "--launcher", metavar="smpi", help="Simulate the ranks: the command is the program alone, see -n."
    ),
    ranks: int = typer.Option(None, "--ranks", "-n", min=1, max=2**31 - 1, metavar="N", help="Ranks to simulate."),
    platform: Path = typer.Option(
        None, "--platform", metavar="FILE", help="SimGrid platform file. [default: a cluster of N equal hosts]"
    ),
    compute: str = typer.Option(
        "measured",
        "--compute",
        metavar="measured|effort",
        help="The duration of simulated computation: measured on this machine, or effort times --rates.",
    ),
    rates: Path = typer.Option(
        None, "--rates", metavar="FILE", help="Seconds per unit of effort: a file written by quipu rates."
    ),
    counters: str = typer.Option(
        None,
        "--counters",
        metavar="SOURCE|NAMES",
        help="Count events of the processor. A source: perf, papi, cachegrind or reuse (simulated caches, in further "
        "runs), effort, auto; or names: instructions,L1,LLC,mem, or events of the processor.",
    ),
    machine: Path = typer.Option(
        None,
        "--machine",
        metavar="FILE",
        help="The machine whose caches --counters cachegrind simulates, as written by quipu machine. [default: this "
        "machine, as the system describes it]",
    ),
    sampling_rate: int = typer.Option(
        1000, "--sampling-rate", metavar="HZ", help="Samples per second of processor time, if counters are sampled."
    ),
    functions: bool = typer.Option(
        False, "--functions", help="Sample functions of programs and libraries that were not built with the wrappers."
    ),
    memory: bool = typer.Option(
        False,
        "--memory",
        help="Count allocations per call path, and record the largest heap and the call paths that allocated it.",
    ),
    files: bool = typer.Option(
        False, "--files", help="Count read and write calls and bytes per call path and group of files."
    ),
    offload: bool = typer.Option(
        False,
        "--offload",
        help="Count kernels started on GPUs and other devices, and bytes copied to and from them.",
    ),
    timeout: float = typer.Option(None, "--timeout", metavar="SECONDS", help="Stop a run that takes longer."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Print only errors."),
    as_json: bool = typer.Option(
        False, "--json", help="Print JSON about the runs; the output of the program goes to stderr."
    ),
) -> None:
    """Run a program under measurement; each repetition becomes one run archive.

    \b
    Example: quipu run --param p=4 --param n=100 --rep 3 -o heat -- mpirun -n 4 ./heat 100
             quipu run --counts --param p=64 --param n=16 -o heat -- mpirun -n 64 ./heat 16
             quipu run --launcher smpi --platform cluster.xml -n 1024 --param p=1024 -- ./heat 100
             quipu run --launcher smpi --compute effort --rates heat.rates -n 1024 --param p=1024 -- ./heat 100
    """
    if not program:
        raise UsageError(NO_PROGRAM())
    parameters = parse_assignments("--param", param)
    of_times = {"--functions": functions, "--counters": counters, "--mpi-wait": mpi_wait, "--rates": rates}
    _expect_no_times(of_times if counts else {})
    if timeout is not None and not 0 < timeout <= 1e300:
        raise UsageError(f"--timeout {timeout:g}: give a number of seconds above 0")
    if filter_file is not None:
        from quipu.report.formats import read_filter

        read_filter(filter_file)  # reports an error once; otherwise every rank would report it
    if compute not in ("measured", "effort"):
        raise UsageError(f"--compute {compute!r}: choose measured or effort")
    if (compute == "effort") != (rates is not None):
        raise UsageError("--compute effort and --rates FILE go together; quipu rates writes the file")
    load_numpy()
    from ..campaign.repetition import LaunchOptions, RunFailed
    from ..campaign.repetition import run as launch
    from ..launch.launchers import launch_command

    if launcher is not None:
        program = list(launch_command(launcher, program, ranks, platform))
    elif ranks is not None or platform is not None:
        raise UsageError("-n and --platform belong to --launcher smpi; for other launchers, write them in the command")
    options = LaunchOptions(
        clock="none" if counts else None,
        filter_file=filter_file,
        mpi_wait=mpi_wait,
        rates=rates,
        counters=counters,
        machine=None if machine is None else read_machine(machine),
        sampling_rate=sampling_rate,
        functions=functions,
        memory=memory,
        files=files,
        offload=offload,
        mpi_reduce=reduce,
        rank_columns=rank_columns,
        python=python,
        timeout=timeout,
        say=(lambda _: None) if quiet else say,
        warns=not quiet,
    )
    archives: list[RunArchive] = []
    failure: RunFailed | None = None
    with stdout_for_json(as_json):
        while len(archives) < repetitions and failure is None:
            try:
                archives.append(launch(program, parameters, None, output, options))
                options = replace(options, warns=False)
            except RunFailed as error:
                failure = error
                archives += [error.archive] if error.archive is not None else []
            if archives and not (quiet or as_json) and (failure is None or failure.archive is not None):
                _summarize(archives[-1], reported=str(failure or ""))
    if as_json:
        from quipu.report.run_json import runs_json

        show_json(runs_json(output, archives, None if failure is None else str(failure)))
    if failure is not None:
        raise failure


def _expect_no_times(options: Mapping[str, object]) -> None:
    """Raise UsageError if one of these options is given, because a count-only run has no times and no samples.

    options: name → value.
    """
    if given := [name for name, value in options.items() if value]:
        raise UsageError(f"{', '.join(given)}: --counts reads no clock; measure this in a run without --counts")


def _summarize(archive: RunArchive, reported: str = "") -> None:
    """Print a summary of a run on stderr, because stdout belongs to the program.

    reported: the error message that follows, which the summary does not repeat.
    """
    from quipu.report.terminal import console_for, layout_of, run_summary
    from quipu.report.tree_views import run_view

    console = console_for(sys.stderr)
    console.print(run_summary(run_view(archive, reported), layout_of(console)))
