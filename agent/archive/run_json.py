# SPDX-License-Identifier: Apache-2.0
"""Read and write RunMetadata as JSON: run.json of an archive, launch.json of a raw folder."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from quipu.modeling.documents import check_document, is_parameter, json_of, typed
from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import Metric
from quipu.modeling.limits import reading_file

from .metadata import RESERVED, LauncherFacts, NodeFacts, RunMetadata

RUN_FORMAT = "quipu-run"
LAUNCH_FORMAT = "quipu-launch"
SCHEMA = 1
_METRIC = tuple(entry.name for entry in fields(Metric))


@dataclass(frozen=True)
class _Facts:
    """The fields of run.json whose content `RunMetadata` does not check (it declares them as Any)."""

    launcher: LauncherFacts = field(default_factory=LauncherFacts)
    nodes: tuple[NodeFacts, ...] = ()


def to_json(metadata: RunMetadata, format_name: str = RUN_FORMAT) -> dict[str, Any]:
    """Return the JSON object of run.json (or, with `LAUNCH_FORMAT`, of launch.json)."""
    content = asdict(replace(metadata, metrics=()))
    content["metrics"] = [asdict(metric) for metric in metadata.metrics]
    return {"format": format_name, "schema": SCHEMA, **content}


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file. Raises FormatError if it contains no JSON object or exceeds the limits."""
    with reading_file(path) as raw:
        check_document(raw)
        try:
            content = json_of(raw.decode("utf-8"), path)
        except UnicodeDecodeError as error:
            raise FormatError(path, "is not JSON text") from error
    if not isinstance(content, dict):
        raise FormatError(path, "is not a JSON object")
    return content


def write_json(path: Path, content: Mapping[str, Any], durable: bool = False) -> None:
    """Write a JSON file with `write_text`. Raises OSError."""
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n", durable)


def write_text(path: Path, text: str, durable: bool = False) -> None:
    """Write a text file by atomic replacement, so that no reader sees an incomplete file.

    Bytes of file names that are not UTF-8 (surrogates of os.fsdecode) are written as JSON escapes, which JSON readers
    restore. durable: also wait until the file is on the disk. Raises OSError.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def from_json(path: Path, content: Mapping[str, Any], format_name: str = RUN_FORMAT) -> RunMetadata:
    """Return the metadata in a JSON object that was read from `path`. Raises FormatError with the wrong key."""
    if content.get("format") != format_name:
        raise FormatError(path, f'is not a file of this kind: "format" should be "{format_name}"')
    if content.get("schema") != SCHEMA:
        raise FormatError(
            path,
            f"has schema {content.get('schema')!r}, this Quipu reads schema {SCHEMA}: "
            "read it with the Quipu version that wrote it, or measure again",
        )
    metadata = typed(content, RunMetadata, path)
    typed(content, _Facts, path)
    if strange := [name for name in metadata.parameters if not is_parameter(name)]:
        raise FormatError(path, f"parameters: {strange[0]!r} is not a valid name: use letters, digits and _")
    whole = all(entry.keys() >= {*_METRIC} for entry in content.get("metrics", ()))
    names = [metric.name for metric in metadata.metrics]
    if not whole or len({*names}) != len(names) or not all(names) or RESERVED.intersection(names):
        raise FormatError(path, "metrics must be entries with " + ", ".join(_METRIC) + " and different names")
    if "counts_only" not in content:  # an archive of an earlier version
        return replace(metadata, counts_only=has_no_times(metadata.metrics))
    return metadata


def has_no_times(metrics: Collection[Metric]) -> bool:
    """Return whether these are the metrics of a count-only run: some metrics, but no "time"."""
    return bool(metrics) and all(metric.name != "time" for metric in metrics)
