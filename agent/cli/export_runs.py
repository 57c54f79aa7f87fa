# SPDX-License-Identifier: Apache-2.0
"""Export an experiment for Thicket: a folder with one Caliper file for each run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
from quipu.modeling.errors import UsageError
from quipu.modeling.printable import counted

from ..load.measurements import load
from .exported import Exported, oversubscribed_note
from .options import over_ranks_of
from .output import require_no_source, require_own, write_together


def export_runs(source: Path, output: Path | None, over_ranks: str, force: bool) -> Exported:
    """Write a folder of files whose names contain parameters and repetition.

    Files of an earlier export of the same experiment are removed if their runs no longer exist. output: the folder;
    None: a folder with the name of the experiment. Raises UsageError if the folder contains files of others and `force`
    is not set, because measurements of Caliper have similar names. If one file cannot be written, the folder is not
    changed.
    """
    from quipu.report.formats.stacks import is_of_quipu, run_text

    data = load(source, over_ranks_of(over_ranks))
    target = Path(f"{data.name}.thicket") if output is None else output
    if target.exists() and not target.is_dir():
        raise UsageError(f"{target} is a file, but Thicket reads a folder of files: give another name with -o")
    require_no_source(target, [source])
    if target.is_dir() and not force:
        for path in target.iterdir():
            if not path.is_file() or not is_of_quipu(path.read_bytes().decode("utf-8", "replace")):
                raise UsageError(f"{path} is not an export to Caliper: give another folder with -o, or --force")
    if not target.absolute().parent.is_dir():
        raise UsageError(f"{target}: the folder {target.parent} does not exist: make it first")
    texts: dict[Path, str | bytes] = {}
    metrics = list(data.metrics.values())
    for place, point in enumerate(data.points.tolist()):
        parameters = dict(zip(data.parameters, point, strict=True))
        for run in range(max(values.shape[2] for values in data.values.values())):
            values = {name: array[:, place, run] for name, array in data.values.items() if run < array.shape[2]}
            if all(np.isnan(one).all() for one in values.values()):
                continue
            chosen = [metric for metric in metrics if metric.name in values]
            name = ".".join([data.name, *(f"{key}={value:.17g}" for key, value in parameters.items()), f"r{run + 1}"])
            texts[target / f"{name}.cali"] = run_text(data.tree, chosen, values, parameters, run + 1)
    _write(target, texts, force)
    removed = _without_others(target, data.name, texts)
    notes = oversubscribed_note(data)
    if removed:
        files = counted(removed, "file", "files")
        notes.append(f"removed {files} that an earlier export wrote for runs that {data.name} no longer has")
    content = f": {counted(len(texts), 'file', 'files')}, one per configuration and repetition"
    return Exported(data.name, target, notes, content)


def _without_others(folder: Path, name: str, written: Iterable[Path]) -> int:
    """Remove the files of an earlier export of the experiment `name` that are not in `written`; return their number."""
    from quipu.report.formats.stacks import is_of_quipu

    run = re.compile(rf"{re.escape(name)}(\.\w+=[^=]+)*\.r[0-9]+\.cali")
    new, removed = {path.name for path in written}, 0
    for path in folder.iterdir():
        if path.name in new or not run.fullmatch(path.name) or not path.is_file():
            continue
        if is_of_quipu(path.read_bytes().decode("utf-8", "replace")):
            path.unlink()
            removed += 1
    return removed


def _write(folder: Path, texts: Mapping[Path, str | bytes], force: bool) -> None:
    """Write all files of a folder, or none of them. The folder is created if necessary."""
    from quipu.report.formats.stacks import is_of_quipu

    made = not folder.is_dir()
    folder.mkdir(exist_ok=True)
    try:
        for path in texts:
            require_own(path, is_of_quipu, "export to Caliper", force)
        write_together(texts)
    except BaseException:
        if made:
            with suppress(OSError):
                folder.rmdir()
        raise
