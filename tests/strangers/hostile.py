# SPDX-License-Identifier: Apache-2.0
"""Write experiments and raw folders with one malicious or damaged part.

Readers reach the changed part: tables stay valid tables, JSON stays JSON, and checksums are correct or absent.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from profile_writer import Node, Profile, Thread, Weights, counted, rank_profile
from quipu.agent.archive.checksums import NAME as SUMS
from quipu.agent.archive.checksums import write_checksums
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.launch.raw_folder import write_launch
from quipu.agent.merge.experiment import load_experiment
from quipu.agent.merge.run import merge_run
from quipu.modeling.analysis import analyze
from quipu.modeling.document import to_document
from quipu.report.formats.extrap import format_json
from reduced_writer import packed, reduced_rank, sections

STEERING = "\x1b]0;taken\x07\x1b[31m\u202egnp.exe\x9b2J\r\x08"
TEXTS = (STEERING, "", "../../escaped", "/dev/zero", "a" * 70_000, "9" * 5000, "a\nb", "->" * 300, "<script>", "\ud800")
INTEGERS = (-1, 0, 1, 2**31 - 1, 2**31, 2**63 - 1, -(2**63), 2**64, 10**400)
FLOATS = (float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 5e-324, -0.0, 1e18)
OTHERS: tuple[Any, ...] = (None, True, [], {}, [[[]]], {"a": {"b": [1]}})
TABLES = ("regions", "callpaths", "values", "statistics", "ranks", "communication")
POINTS = (2, 4, 8, 16, 32)


def value(chance: random.Random) -> Any:
    """Return a value that is invalid in files of Quipu."""
    return chance.choice(chance.choice((TEXTS, INTEGERS, FLOATS, OTHERS)))


def experiment(folder: Path) -> Path:
    """Write an experiment of five small runs, of one parameter."""
    for p in POINTS:
        raw = folder / "raw"
        raw.mkdir(parents=True)
        for rank in (0, 1):
            rank_profile(rank, work=100 * p).write(raw)
        merge_run(
            raw, folder, RunMetadata({"p": p}, command=("./app",), started="2026-01-02T03:04:05+00:00", exit_code=0)
        )
    return folder


def raw_folder(folder: Path, profiles: list[Profile]) -> Path:
    """Write a raw folder of these profiles, with all other files that there may be."""
    folder.mkdir(parents=True)
    for profile in profiles:
        profile.write(folder)
    (folder / "rank-0.json").write_text('{"rank": 0, "pid": 100, "host": "n1", "affinity": [0, 1]}', encoding="utf-8")
    (folder / "alive-n1").write_text("1000", encoding="utf-8")
    node = {"ended": True, "host": "n1", "cpus": 2, "cores": 2, "memory_bytes": 2**34, "agent_seconds": 0.5}
    node |= {"processes": [{"pid": 100, "ended_ns": 9}], "ranks": [{"rank": 0, "pid": 100, "affinity": [0]}]}
    node |= {"samples": [{"seconds": 1, "load": 2}]}
    (folder / "node-n1.json").write_text(json.dumps(node), encoding="utf-8")
    write_launch(folder, RunMetadata({"p": 2}, command=("./app",), seconds=1.0, exit_code=0))
    return folder


def changed_json(content: Any, chance: random.Random) -> Any:
    """Return parsed JSON with one value, key or place changed."""
    if not isinstance(content, dict | list) or not content or chance.random() < 0.1:
        return value(chance)
    keys = list(content) if isinstance(content, dict) else list(range(len(content)))
    key = chance.choice(keys)
    result = content.copy()
    match chance.randrange(6):
        case 0 if isinstance(result, dict):
            result[chance.choice(TEXTS)] = result.pop(key)
        case 1:
            del result[key]
        case 2 if isinstance(result, list):
            result.append(result[key])
        case _:
            result[key] = changed_json(result[key], chance) if chance.random() < 0.7 else value(chance)
    return result


def change_json(path: Path, chance: random.Random) -> None:
    """Change a value of a JSON file, sometimes also its text."""
    content = json.loads(path.read_text(encoding="utf-8"))
    text = json.dumps(changed_json(content, chance), ensure_ascii=chance.random() < 0.5)
    match chance.randrange(12):
        case 0:
            text = "[" * 5000 + "]" * 5000
        case 1:
            text = text.replace("1", "1" * 5000, 1)
        case 2:
            text = text[: chance.randrange(len(text))]
    path.write_bytes(text.encode("utf-8", "surrogatepass"))


def change_table(path: Path, chance: random.Random) -> None:
    """Change a Parquet file: a cell, a column, the rows, a type."""
    table = pq.read_table(path)
    place = chance.randrange(table.num_columns)
    name, kind = table.column_names[place], table.schema.field(place).type
    column = table.column(place).to_pylist()
    match chance.randrange(10):
        case 0:
            table = table.remove_column(place)
        case 1:
            table = table.slice(0, chance.randrange(table.num_rows + 1))
        case 2:
            table = pa.concat_tables([table, table])
        case 3:
            table = table.take(pa.array(np.array(chance.sample(range(table.num_rows), table.num_rows), dtype=np.int64)))
        case 4:
            other = pa.array([None] * len(column), kind)
            table = table.set_column(place, name, other)
        case 5:
            table = table.set_column(place, name, table.column(place).cast(pa.string()))
        case _:
            if column:
                for _ in range(chance.choice((1, len(column)))):
                    column[chance.randrange(len(column))] = _cell(kind, chance)
            table = table.set_column(place, name, pa.array(column, kind))
    pq.write_table(table, path)


def _cell(kind: pa.DataType, chance: random.Random) -> Any:
    if pa.types.is_floating(kind):
        return chance.choice(FLOATS)
    if pa.types.is_integer(kind):
        low, high = -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1
        return chance.choice((low, -1, 0, 1, 7, high))
    return chance.choice(TEXTS[:-1])


def change_profile(profile: Profile, chance: random.Random) -> Profile:
    """Return a profile with something changed that the runtime would not write."""
    number = chance.choice((0, 1, 255, 2**31 - 1, 2**32 - 1))
    large = chance.choice((0, 1, 2**31, 2**63 - 1, 2**63, 2**64 - 1))
    text = chance.choice(TEXTS[:-1])
    nodes = list(profile.nodes)
    at = chance.randrange(len(nodes))
    match chance.randrange(9):
        case 0:
            nodes[at] = Node(number, chance.choice((0, number)), nodes[at].region, nodes[at].values)
        case 1:
            nodes[at] = Node(nodes[at].id, nodes[at].parent, large, nodes[at].values)
        case 2:
            nodes[at] = Node(nodes[at].id, nodes[at].parent, nodes[at].region, [large] * 4, number % 1000)
        case 3:
            key = chance.choice(
                (*profile.attributes, "partners:0", "program", "library:/dev/zero", "mpi_wait_probe_seconds", "pair_ns")
            )
            profile.attributes = {**profile.attributes, key: text[:3000]}
        case 4:
            region = chance.choice(list(profile.regions))
            profile.regions = {**profile.regions, region: f"{text[:3000]}\x1f{text[:900]}\x1fx.c\x1f1\x1f0\x1f0"}
        case 5:
            profile.metrics = [*profile.metrics[:3], f"{text[:60]}\t1\teffort\tsum\tx"]
        case 6:
            name = chance.choice(("state", "clock", "chunk_size", "node_size", "pid"))
            setattr(profile, name, number or 1)
        case 7:
            profile.ticks, profile.nanoseconds = (1, large), (2, chance.choice((0, 3, large)))
            profile.threads = [Thread(3, large, number)]
        case _:
            profile.weights = [Weights(2, [[-(2**63), 2**63 - 1]] * 3, first=chance.choice((0, number)), metric=number)]
            profile.rests = ((number % 2**31, f"1 2\x1f{'9' * 20} 1 1 1 1 1"), (0, "\x1f1"))
    profile.nodes = nodes
    profile.sealed = chance.random() < 0.5
    return profile


def change_place(path: Path, chance: random.Random) -> None:
    """Replace a file by something that is not a file."""
    path.unlink()
    match chance.randrange(5):
        case 0:
            path.mkdir()
        case 1:
            os.mkfifo(path)
        case 2:
            path.symlink_to(path.name)
        case 3:
            path.symlink_to("/dev/zero")
        case _:
            path.write_bytes(b"")


def hostile_experiment(whole: Path, folder: Path, chance: random.Random) -> Path:
    """Copy an experiment and change something in one of its runs."""
    shutil.copytree(whole, folder)
    run = chance.choice(sorted(folder.iterdir()))
    name = chance.choice(("run.json", "run.json", *(f"{table}.parquet" for table in TABLES)))
    chosen: Callable[[Path, random.Random], None] = change_json if name == "run.json" else change_table
    (change_place if chance.random() < 0.08 else chosen)(run / name, chance)
    if chance.random() < 0.2:  # damage, and not malice
        return folder
    (run / SUMS).unlink()
    if chance.random() < 0.5 and (run / name).is_file() and not (run / name).is_symlink():
        write_checksums(run)
    return folder


def hostile_file(whole: Path, folder: Path, chance: random.Random) -> Path:
    """Write models or measurements of an experiment as one file with something changed."""
    folder.mkdir()
    measured = load_experiment(whole)
    if chance.random() < 0.5:
        path, text = folder / "models.json", json.dumps(to_document(analyze(measured)))
    else:
        path, text = folder / "extrap.json", format_json(measured).text
    path.write_text(text, encoding="utf-8")
    change_json(path, chance)
    if path.name == "models.json":  # its first key gives the format
        path.write_bytes(path.read_bytes().replace(b'{"schema"', b'{"format": "quipu-models", "schema"', 1))
    return path


def hostile_raw_folder(folder: Path, chance: random.Random) -> Path:
    """Write a raw folder with something changed in one of its files."""
    kind = chance.randrange(4)
    if kind == 0:
        profiles = [change_profile(chance.choice((rank_profile, counted))(0), chance), rank_profile(1)]
        return raw_folder(folder, profiles)
    ranks = [reduced_rank(rank) for rank in range(2)]
    raw_folder(folder, ranks)
    if kind == 1:
        content = sections(chance.random() < 0.5, ranks)
        at = chance.randrange(len(content))
        tag, section = content[at]
        if len(section) >= 4:
            place = 4 * chance.randrange(len(section) // 4)
            word = struct.pack("<I", chance.choice((0, 1, 2**31 - 1, 2**31, 2**32 - 1)))
            section = section[:place] + word + section[place + 4 :]
        content[at] = tag, section if chance.random() < 0.8 else section[: len(section) // 2]
        (folder / "reduced-x.quipu").write_bytes(packed(content))
        return folder
    names = ("rank-0.json", "node-n1.json", "launch.json")
    name = chance.choice(names)
    if kind == 2:
        change_json(folder / name, chance)
    else:
        change_place(folder / chance.choice((*names, "profile-n1-100.quipu", "alive-n1")), chance)
    return folder
