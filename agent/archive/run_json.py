"""RunMetadata as JSON: run.json of an archive, launch.json of a raw folder."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal, cast

from quipu.modeling.errors import FormatError
from quipu.modeling.experiment import Metric

from .metadata import RESERVED, RunMetadata

RUN_FORMAT = "quipu-run"
LAUNCH_FORMAT = "quipu-launch"
SCHEMA = 1
LARGEST_JSON = 64 << 20


def to_json(metadata: RunMetadata, format_name: str = RUN_FORMAT) -> dict[str, Any]:
    """Return the JSON object of run.json (or, with `LAUNCH_FORMAT`, of launch.json)."""
    content = asdict(replace(metadata, metrics=()))
    content["metrics"] = [asdict(metric) for metric in metadata.metrics]
    return {"format": format_name, "schema": SCHEMA, **content}


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; FormatError if it is something else or absurdly large."""
    try:
        if path.stat().st_size > LARGEST_JSON:
            raise FormatError(path, f"is larger than {LARGEST_JSON >> 20} MiB: not a file of Quipu")
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise FormatError(path, "is missing") from error
    except OSError as error:
        raise FormatError(path, f"cannot be read: {error.strerror or error}") from error
    except json.JSONDecodeError as error:
        raise FormatError(path, f"is not JSON (truncated?): {error.msg}", error.lineno) from error
    except (UnicodeDecodeError, RecursionError, ValueError) as error:
        raise FormatError(path, "is not JSON text") from error
    if not isinstance(content, dict):
        raise FormatError(path, "is not a JSON object")
    return content


def write_json(path: Path, content: Mapping[str, Any], durable: bool = False) -> None:
    """Write a JSON file by atomic replacement, so that no reader ever sees half of it.

    durable: also wait until it is on the disk.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(content, file, indent=1, ensure_ascii=False)
            file.write("\n")
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def from_json(path: Path, content: Mapping[str, Any], format_name: str = RUN_FORMAT) -> RunMetadata:
    """Return the metadata in a JSON object read from `path`; FormatError names the key at fault."""
    if content.get("format") != format_name:
        raise FormatError(path, f'is not a file of this kind: "format" should be "{format_name}"')
    if content.get("schema") != SCHEMA:
        raise FormatError(
            path,
            f"has schema {content.get('schema')!r}, this Quipu reads schema {SCHEMA}: "
            "read it with the Quipu version that wrote it, or measure again",
        )
    reader = _Reader(path, content)
    return RunMetadata(
        parameters=reader.parameters(),
        repetition=reader.integer("repetition", 1, 1),
        command=tuple(reader.texts("command")),
        started=reader.text("started"),
        seconds=reader.optional_number("seconds"),
        exit_code=reader.optional_integer("exit_code"),
        partial=reader.boolean("partial"),
        problems=tuple(reader.texts("problems")),
        ranks=reader.integer("ranks", 0, 0),
        launcher=reader.mapping("launcher"),
        environment_added=reader.text_mapping("environment_added"),
        metrics=reader.metrics(),
        nodes=tuple(reader.mappings("nodes")),
        overhead=reader.number_mapping("overhead"),
        quipu_version=reader.text("quipu_version"),
        rank_columns=reader.boolean("rank_columns", True),
    )


class _Reader:
    """Typed access to the keys of an untrusted JSON object."""

    def __init__(self, path: Path, content: Mapping[str, Any]) -> None:
        self.path = path
        self.content = content

    def wrong(self, key: str, expected: str) -> FormatError:
        return FormatError(self.path, f'"{key}" should be {expected}')

    def text(self, key: str) -> str:
        value = self.content.get(key, "")
        if not isinstance(value, str):
            raise self.wrong(key, "text")
        return value

    def boolean(self, key: str, default: bool = False) -> bool:
        value = self.content.get(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def integer(self, key: str, default: int, lowest: int) -> int:
        value = self.content.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value < 1 << 31:
            raise self.wrong(key, f"a whole number from {lowest}")
        return value

    def optional_integer(self, key: str) -> int | None:
        value = self.content.get(key)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 1 << 31):
            raise self.wrong(key, "a whole number or null")
        return value

    def optional_number(self, key: str) -> float | None:
        value = self.content.get(key)
        if value is None:
            return None
        return self._finite(key, value)

    def _finite(self, key: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e300 or math.isnan(value):
            raise self.wrong(key, "a finite number")
        return value

    def texts(self, key: str) -> list[str]:
        value = self.content.get(key, [])
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            raise self.wrong(key, "a list of texts")
        return value

    def mapping(self, key: str) -> dict[str, Any]:
        value = self.content.get(key, {})
        if not isinstance(value, dict):
            raise self.wrong(key, "an object")
        return value

    def mappings(self, key: str) -> list[dict[str, Any]]:
        value = self.content.get(key, [])
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            raise self.wrong(key, "a list of objects")
        return value

    def text_mapping(self, key: str) -> dict[str, str]:
        value = self.mapping(key)
        if not all(isinstance(entry, str) for entry in value.values()):
            raise self.wrong(key, "an object of texts")
        return value

    def number_mapping(self, key: str) -> dict[str, float]:
        return {name: self._finite(f"{key}.{name}", value) for name, value in self.mapping(key).items()}

    def parameters(self) -> dict[str, float]:
        return self.number_mapping("parameters")

    def metrics(self) -> tuple[Metric, ...]:
        result = []
        for entry in self.mappings("metrics"):
            fields = [entry.get(key) for key in ("name", "unit", "kind", "over_locations", "description")]
            if not all(isinstance(value, str) for value in fields) or not fields[0] or fields[0] in RESERVED:
                raise self.wrong("metrics", "a list of metrics (name, unit, kind, over_locations, description)")
            name, unit, kind, over, description = cast(list[str], fields)
            if kind not in ("effort", "cost") or over not in ("sum", "max"):
                raise self.wrong(f"metrics.{name}", 'of kind "effort" or "cost" and over_locations "sum" or "max"')
            result.append(
                Metric(
                    name, unit, cast(Literal["effort", "cost"], kind), cast(Literal["sum", "max"], over), description
                )
            )
        if len({metric.name for metric in result}) != len(result):
            raise self.wrong("metrics", "a list of metrics with different names")
        return tuple(result)
