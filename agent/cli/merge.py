# SPDX-License-Identifier: Apache-2.0
"""`quipu merge`: make run archives from the raw folders of interrupted runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from quipu.modeling.errors import FormatError, MeasurementError

from .options import JOBS, RANK_COLUMNS
from .output import layout, say, show, show_json

if TYPE_CHECKING:
    from quipu.modeling.parallel import Workers

    from ..archive.run import RunArchive


def command(
    *,
    folders: list[Path] = typer.Argument(..., metavar="RAW...", help="Raw folders; error messages name them."),
    output: Path = typer.Option(
        None,
        "--output",
        "-o",
        metavar="DIR",
        help="Experiment folder for the archives; default: the folder that contains the raw folder.",
    ),
    keep: bool = typer.Option(False, "--keep-raw", help="Keep the raw folders."),
    jobs: str = typer.Option("1", "--jobs", "-j", metavar="N|mpi", help=JOBS),
    rank_columns: int = typer.Option(None, "--rank-columns", min=0, metavar="N", help=RANK_COLUMNS),
    force: bool = typer.Option(False, "--force", help="Also merge a run that still seems to be running."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Merge the profiles of the processes of a run into a run archive.

    `quipu run` merges automatically. Use this command after a full disk or a kill. Under mpirun, all ranks merge
    together (--jobs mpi). The archive does not depend on the number of processes.

    \b
    Example: quipu merge heat/.raw-p=4-3f2a -o heat
             mpirun -n 64 quipu merge heat/.raw-p=65536-7c01 -o heat
    """
    from quipu.modeling import parallel
    from quipu.report.run_json import runs_json
    from quipu.report.terminal import run_summary
    from quipu.report.tree_views import run_view

    # Under mpirun all ranks must share the work, because separate merges of one folder would disturb each other.
    with parallel.jobs("mpi" if parallel.started_by_mpi() else jobs) as workers:
        if workers is None:
            return
        merged = []
        for archive in _merge(folders, output, keep, force, workers, rank_columns):
            merged.append(archive)
            if not as_json:
                show([run_summary(run_view(archive), layout())])
    if as_json:
        show_json(runs_json(output if output is not None else merged[0].path.parent, merged))


def _merge(
    folders: list[Path], output: Path | None, keep: bool, force: bool, workers: Workers, rank_columns: int | None
) -> Iterator[RunArchive]:
    """Merge one folder after the other and yield each run. The runs before an error are therefore merged and shown.

    A merge that was killed may have written the archive without removing the raw folder. Such a raw folder is not
    merged again, but removed, so that no run exists twice.
    """
    from ..archive.read import read_archive
    from ..merge.merged import merged_as
    from ..merge.run import merge_run

    for folder in folders:
        _expect_raw(folder)
        if not force:
            _expect_ended(folder)
        destination = output if output is not None else folder.absolute().parent
        fresh = force or keep or not destination.is_dir()
        if not fresh and (known := merged_as(folder, destination)) is not None:
            say(f"{folder} was merged before into {known}, and is removed (--force merges it again)")
            shutil.rmtree(folder, ignore_errors=True)
            yield read_archive(known)
            continue
        yield merge_run(folder, destination, keep_raw=keep, workers=workers, column_ranks=rank_columns)


def _expect_raw(folder: Path) -> None:
    """Raise MeasurementError if a folder is no raw folder. For an experiment, the message names its raw folders."""
    from ..launch.raw_folder import LAUNCH_FILE

    if any(next(folder.glob(left), None) is not None for left in (LAUNCH_FILE, "rank-*.json", "profile-*")):
        return
    inside = sorted(path.parent for path in folder.glob(f"*/{LAUNCH_FILE}"))
    if inside:
        names = ", ".join(map(str, inside[:4]))
        raise MeasurementError(f"{folder}: is not a raw folder of a run; it contains the raw folders {names}")
    what = (
        f"has no {LAUNCH_FILE}, so it is not a raw folder of a run" if folder.exists() else "the folder does not exist"
    )
    raise MeasurementError(f"{folder}: {what}; raw folders are called .raw-… and are in the folder of an experiment")


def _expect_ended(raw: Path) -> None:
    """Raise MeasurementError if ranks still write to the raw folder, which the merge would remove."""
    from ..launch.raw_folder import read_rank_file, still_runs

    for path in sorted(raw.glob("rank-*.json")):
        try:
            rank = read_rank_file(path)
        except FormatError:
            continue  # the merge will report the error
        if still_runs(rank, raw):
            raise MeasurementError(
                f"{raw}: rank {rank.rank} (process {rank.pid}) is still running: wait for it or end it; "
                "--force merges its counts until now"
            )
