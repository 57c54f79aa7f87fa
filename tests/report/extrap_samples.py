# SPDX-License-Identifier: Apache-2.0
"""The same small experiment in every format of Extra-P, and functions that write Cube profiles."""

from __future__ import annotations

import io
import struct
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

TEXT = """# two call paths, two repetitions
PARAMETER p
PARAMETER n
POINTS ( 4 10 ) ( 8 10 ) ( 4 20 )
METRIC time
REGION main
DATA 1.5 1.25
DATA 2.5 2.25
DATA 3.5 3
REGION main->foo
DATA 10 11
DATA 20 21
DATA 30 31
METRIC visits
REGION main->foo
DATA 7 7
DATA 7 7
DATA 7 7
"""
JSON = """{"parameters": ["p", "n"], "measurements": {
"main": {"time": [{"point": [4, 10], "values": [1.5, 1.25]}, {"point": [8, 10], "values": [2.5, 2.25]},
                  {"point": [4, 20], "values": [3.5, 3]}]},
"main->foo": {"time": [{"point": [4, 10], "values": [10, 11]}, {"point": [8, 10], "values": [20, 21]},
                       {"point": [4, 20], "values": [30, 31]}],
              "visits": [{"point": [4, 10], "values": [7, 7]}, {"point": [8, 10], "values": [7, 7]},
                         {"point": [4, 20], "values": [7, 7]}]}}}
"""
CubeMetric = tuple[str, str, Sequence[Sequence[float]]]
_ROWS: list[tuple[str, str, list[tuple[tuple[int, int], tuple[float, ...]]]]] = [
    ("main", "time", [((4, 10), (1.5, 1.25)), ((8, 10), (2.5, 2.25)), ((4, 20), (3.5, 3))]),
    ("main->foo", "time", [((4, 10), (10, 11)), ((8, 10), (20, 21)), ((4, 20), (30, 31))]),
    ("main->foo", "visits", [((4, 10), (7, 7)), ((8, 10), (7, 7)), ((4, 20), (7, 7))]),
]
JSON_LINES = "".join(
    f'{{"params": {{"p": {p}, "n": {n}}}, "callpath": "{path}", "metric": "{metric}", "value": {list(values)}}}\n'
    for path, metric, entries in _ROWS
    for (p, n), values in entries
)
TALPAS = "".join(
    f'{{"parameters":{{"p":{p};"n":{n}}};"metric":"{metric}";"callpath":"{path}";"value":{value}}}\n'
    for path, metric, entries in _ROWS
    for (p, n), values in entries
    for value in values
)


def _numbered() -> str:
    import json

    points = [(4, 10), (8, 10), (4, 20)]
    paths, metrics = ["main", "main->foo"], ["time", "visits"]
    content = {
        "parameters": [{"id": 2, "name": "n"}, {"id": 1, "name": "p"}],
        "callpaths": [{"id": count, "name": name} for count, name in enumerate(paths, start=1)],
        "metrics": [{"id": count, "name": name} for count, name in enumerate(metrics, start=1)],
        "coordinates": [
            {
                "id": count,
                "parameter_value_pairs": [
                    {"parameter_id": 1, "parameter_value": str(p)},
                    {"parameter_id": 2, "parameter_value": n},
                ],
            }
            for count, (p, n) in enumerate(points, start=1)
        ],
        "measurements": [
            {
                "coordinate_id": points.index(point) + 1,
                "callpath_id": paths.index(path) + 1,
                "metric_id": metrics.index(metric) + 1,
                "value": value,
            }
            for path, metric, entries in _ROWS
            for point, values in entries
            for value in values
        ],
    }
    return json.dumps(content)


JSON_NUMBERED = _numbered()
# Format: (suffix, text, reader of Extra-P)
ALL = {
    "text": (".txt", TEXT, "text"),
    "json": (".json", JSON, "json"),
    "numbered": (".json", JSON_NUMBERED, "json"),
    "lines": (".jsonl", JSON_LINES, "json"),
    "talpas": (".txt", TALPAS, "talpas"),
}

_ANCHOR = """<?xml version="1.0" encoding="UTF-8"?>
<cube version="4.8"><metrics>{metrics}</metrics><program>
<region id="0" mod="heat.c" begin="12" end="90"><name>main</name><mangled_name>main</mangled_name>
<paradigm>user</paradigm><role>function</role><url></url><descr></descr></region>
<region id="1" mod="heat.c" begin="3" end="9"><name>sweep(int)</name><mangled_name>_Z5sweepi</mangled_name>
<paradigm>compiler</paradigm><role>function</role><url></url><descr></descr></region>
<region id="2" mod="MPI" begin="-1" end="-1"><name>MPI_Send</name><mangled_name></mangled_name>
<paradigm>mpi</paradigm><role>point2point</role><url></url><descr></descr></region>
{cnodes}</program><system><systemtreenode Id="0"><name>machine</name><class>machine</class>{groups}
</systemtreenode></system></cube>
"""
_MAIN = """<region id="0" mod="heat.c" begin="12" end="90"><name>main</name><mangled_name>main</mangled_name>
<paradigm>user</paradigm><role>function</role>"""
_PROGRAM = """<region id="0" mod="" begin="-1" end="-1"><name>{executable}</name>
<mangled_name>{command_line}</mangled_name><paradigm>measurement</paradigm><role>artificial</role>"""
# main -> sweep, main -> MPI_Send, in the order of Cube's enumerations (the same here for both kinds of metrics)
CNODES = '<cnode id="0" calleeId="0"><cnode id="1" calleeId="1"/>{send}</cnode>'
SEND = '<cnode id="2" calleeId="2"/>'


def write_cube(
    path: Path,
    metrics: Mapping[str, CubeMetric],
    threads: Sequence[int] = (1, 1),
    send: bool = True,
    command_line: str = "",
) -> Path:
    """Write a Cube profile of main, sweep and (with `send`) MPI_Send.

    command_line: instead of main, the region that Score-P makes for the program that was started so.

    metrics: by name the type (DOUBLE, UINT64, MAXDOUBLE …), whether they are EXCLUSIVE or INCLUSIVE, and values per
    call path and location. threads: locations per rank.
    """
    locations = iter(range(sum(threads)))
    groups = "".join(
        f'<locationgroup Id="{rank}"><name>rank {rank}</name><rank>{rank}</rank><type>process</type>'
        + "".join(
            f'<location Id="{next(locations)}"><name>thread {thread}</name><rank>{thread}</rank>'
            "<type>thread</type></location>"
            for thread in range(count)
        )
        + "</locationgroup>"
        for rank, count in enumerate(threads)
    )
    declared = "".join(
        f'<metric id="{number}" type="{scope}"><disp_name>{escape(name)}</disp_name>'
        f"<uniq_name>{escape(name)}</uniq_name>"
        f"<dtype>{kind}</dtype><uom>{'sec' if 'DOUBLE' in kind else 'occ'}</uom><val></val><url></url><descr></descr>"
        "</metric>"
        for number, (name, (kind, scope, _)) in enumerate(metrics.items())
    )
    cnodes = CNODES.format(send=SEND if send else "")
    anchor = _ANCHOR.format(metrics=declared, cnodes=cnodes, groups=groups)
    if command_line:
        executable = Path(command_line.split(maxsplit=1)[0]).name
        anchor = anchor.replace(_MAIN, _PROGRAM.format(executable=executable, command_line=escape(command_line)))
    members = {"anchor.xml": anchor.encode()}
    for number, (kind, _, values) in enumerate(metrics.values()):
        code = "d" if "DOUBLE" in kind else "Q"
        flat = [value for row in values for value in row]
        members[f"{number}.index"] = b"CUBEX.INDEX" + struct.pack("<ihbi", 1, 0, 0, len(values))
        members[f"{number}.index"] += struct.pack(f"<{len(values)}i", *range(len(values)))
        members[f"{number}.data"] = b"CUBEX.DATA" + struct.pack(f"<{len(flat)}{code}", *flat)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path
