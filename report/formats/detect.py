# SPDX-License-Identifier: Apache-2.0
"""Read a file or folder of another tool; detect its format by its content, otherwise by its suffix."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from quipu.modeling.documents import check_document
from quipu.modeling.errors import FormatError, UsageError
from quipu.modeling.experiment import Experiment
from quipu.modeling.limits import reading_file

from ..text import point_text
from ..views import Over
from .extrap import parse_archive, parse_json, parse_json_lines, parse_talpas, parse_text
from .extrap.content import decode, unpacked
from .extrap.json_lines import as_json
from .extrap.text import KEYWORDS
from .profiles import read_caliper, read_cube, read_databases
from .profiles.folders import caliper_files, databases, holds_profiles

PARSERS = {
    "Extra-P text": parse_text,
    "Extra-P JSON": parse_json,
    "Extra-P JSON Lines": parse_json_lines,
    "Talpas": parse_talpas,
}
_SUFFIXES = {".json": "Extra-P JSON", ".jsonl": "Extra-P JSON Lines", ".txt": "Extra-P text"}
_MODELS = re.compile(rb'\s*\{\s*"format"\s*:\s*"quipu-models"')
# In bytes. A longer first line is not one measurement of a format with one measurement per line.
_LONGEST_RECORD = 1 << 16
_READ = f"{', '.join(PARSERS)}, .extra-p, and profiles of Cube, Caliper or HPCToolkit"
_HEAD = 4096  # bytes at the beginning that distinguish text from binary files
_EXTRAP_3, _UTF_16 = b"EXTRAP_EXPERIMENT", (b"\xff\xfe", b"\xfe\xff")
_NAMED = 4  # largest number of configurations named in a note
_ZIP = b"PK\x03\x04"
_TAR_AT, _TAR = 257, b"ustar"


def is_folder_of_others(path: Path) -> bool:
    """Return whether a folder has profiles of another tool (Cube, Caliper, HPCToolkit) and no runs of Quipu."""
    if not path.is_dir() or (path / "run.json").exists() or any(path.glob("*/run.json")):
        return False
    return holds_profiles(path) or bool(caliper_files(path)) or bool(databases(path))


def is_file_of_models(path: Path) -> bool:
    """Return whether a file was written by `quipu model -o`. Raises FormatError if it cannot be read."""
    try:
        with path.open("rb") as file:
            return _MODELS.match(file.read(400)) is not None
    except OSError as error:
        raise FormatError(path, f"cannot be read: {error.strerror or error}") from error


def read_experiment(path: Path | str, over_ranks: Over = "mean") -> Experiment:
    """Return the experiment in a file of Extra-P (any of its formats, also gzip), or in profiles of other tools.

    Profiles of other tools are Cube profiles, files of Caliper, databases of HPCToolkit, and folders of these.
    over_ranks: how to combine the ranks of profiles; the formats of Extra-P have one value for all ranks. A
    configuration without any value is left out, and a note of the experiment names it.

    Raises FormatError with the file and, for formats with lines, the invalid line. Raises UsageError if `over_ranks` is
    not "mean" for a format without ranks.
    """
    return _measured(_read(Path(path), over_ranks))


def _read(path: Path, over_ranks: Over) -> Experiment:
    if path.is_dir():
        if not holds_profiles(path):
            if found := caliper_files(path):
                return read_caliper(path, found, over_ranks)
            if found := databases(path):
                return read_databases(path, found, over_ranks)
        return read_cube(path, over_ranks)
    if path.suffix == ".cali":
        return read_caliper(path, [path], over_ranks)
    if path.suffix == ".cubex" and path.is_file():
        return read_cube(path, over_ranks)
    with reading_file(path) as raw:
        if over_ranks != "mean":
            raise UsageError(f"--over-ranks {over_ranks}: {path} contains only one value for all ranks; use mean")
        return _experiment(path, unpacked(raw, path))


def _measured(experiment: Experiment) -> Experiment:
    """Return an experiment without the configurations that have no value, with a note that names them."""
    known = [np.isfinite(values).any(axis=(0, 2)) for values in experiment.values.values()]
    use = np.any(known, axis=0)
    if use.all() or not use.any():
        return experiment
    named = [point_text(experiment.parameters, point) for point in experiment.points[~use][:_NAMED].tolist()]
    more = int((~use).sum()) - len(named)
    left = "; ".join(named) + (f" and {more} more" if more else "")
    return replace(
        experiment,
        points=experiment.points[use],
        values={name: values[:, use] for name, values in experiment.values.items()},
        notes=(*experiment.notes, f"configurations without any value are left out: {left}"),
    )


def _experiment(path: Path, content: bytes) -> Experiment:
    name = _stem(path)
    if content.startswith(_ZIP):
        return _with_note(parse_archive(content, path, name), "Extra-P experiment")
    if content[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR:
        raise FormatError(path, "is a tar archive: unpack it, or rename it to NAME.cubex if it is a Cube profile")
    if path.suffix == ".extra-p":
        raise FormatError(path, "is not a ZIP file (truncated?): save it again with extrap --save-experiment")
    _check_text(path, content[:_HEAD])
    check_document(content)
    text = decode(content, path)
    kind = format_of(text, path.name)
    if kind is None:
        raise FormatError(path, f"has an unknown format. Quipu reads {_READ}")
    return _with_note(PARSERS[kind](text, path, name), kind)


def _check_text(path: Path, head: bytes) -> None:
    """Raise FormatError if the first bytes of a file are not text. The error names the format if it is known."""
    if _EXTRAP_3 in head:
        raise FormatError(
            path,
            "is an experiment of Extra-P 3, which Quipu does not read: save it with Extra-P 4, "
            f"extrap --extra-p-3 {shlex.quote(str(path))} --save-experiment {shlex.quote(f'{path}.extra-p')}",
        )
    if b"\0" in head and not head.startswith(_UTF_16):
        raise FormatError(path, f"is a binary file of an unknown format. Quipu reads {_READ}")


def format_of(text: str, name: str = "") -> str | None:
    """Return the format of a text (a key of `PARSERS`); None if unknown.

    The content decides. If it does not, the name of the file decides. name: of the file.
    """
    first = next((line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")), "")
    if first.split(maxsplit=1)[:1] and first.split(maxsplit=1)[0] in KEYWORDS:
        return "Extra-P text"
    if len(first) > _LONGEST_RECORD:
        return _SUFFIXES.get(Path(name.removesuffix(".gz")).suffix, "Extra-P JSON")
    record = _object(first)
    if record is not None and "measurements" not in record:
        if "params" in record:
            return "Extra-P JSON Lines"
        if "parameters" in record:
            return "Talpas"
    if (talpas := _object(as_json(first))) is not None and record is None and "parameters" in talpas:
        return "Talpas"
    by_name = _SUFFIXES.get(Path(name.removesuffix(".gz")).suffix)
    if first.lstrip().startswith("{"):
        return by_name if by_name == "Extra-P JSON Lines" else "Extra-P JSON"
    return by_name


def _object(line: str) -> dict[str, Any] | None:
    """Return the JSON object in a line; None if the line is not a JSON object."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _stem(path: Path) -> str:
    name = path.name.removesuffix(".gz")
    return name.rsplit(".", 1)[0] or name


def _with_note(experiment: Experiment, kind: str) -> Experiment:
    return replace(experiment, notes=(*experiment.notes, f"{kind}: values are treated as exclusive, one for all ranks"))
