# SPDX-License-Identifier: Apache-2.0
"""Write docs/measurements.md: tables of benchmark results, from the last lines of their output.

    make bench-modeling_speed > out.txt
    python benchmarks/results_page.py --add modeling_speed out.txt    # keeps its last line in benchmarks/results/
    python benchmarks/results_page.py --add all/selection_study out.txt    # keeps it in addition to another run
    python benchmarks/results_page.py                                 # writes the page again

A result is stored with the command, the date and the machine. In the page, an object of numbers is a row. An object of
such objects is a table without empty rows; if all of them are empty, it is a line. Lists (details of single runs) are
in the JSON file only.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "measurements.md"
MOST_COLUMNS = 14
"""Numbers of one object that are in one row; longer objects are columns."""
HEAD = """# Measurements

Made by `python benchmarks/results_page.py` from the last lines of the benchmarks, which are kept in
[benchmarks/results/](../benchmarks/results). Timings are from shared virtual machines with two cores: ratios within one
run compare, seconds of different runs do not.
"""


def machine() -> str:
    """Return the processor and the number of cores of this machine."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores"


def keep(name: str, output: Path, command: str) -> None:
    """Keep the last line that a benchmark printed. Raises ValueError if this is not a JSON object."""
    lines = [line for line in output.read_text(encoding="utf-8").splitlines() if line.startswith("{")]
    result = json.loads(lines[-1]) if lines else None
    if not isinstance(result, dict):
        raise ValueError(f"{output}: has no line with a JSON object; run benchmarks/{name}.py to its end")
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    content = {"command": command, "date": date, "machine": machine(), "result": result}
    file = RESULTS / f"{name}.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def title(name: str) -> str:
    """Return the first line of the docstring of a benchmark; a folder before its name is one of several runs."""
    tree = ast.parse((ROOT / "benchmarks" / f"{name.rpartition('/')[2]}.py").read_text(encoding="utf-8"))
    return (ast.get_docstring(tree) or name).splitlines()[0]


def tables(result: Mapping[str, Any], where: str = "") -> Iterator[str]:
    """Yield the Markdown tables of a result; numbers of the same object stand in one table."""
    plain = {key: value for key, value in result.items() if not isinstance(value, dict | list)}
    if len(plain) > MOST_COLUMNS:
        yield table(["", where.rpartition(".")[2]], [[key, cell(value)] for key, value in plain.items()], where)
    elif plain:
        yield table([*plain], [[cell(value) for value in plain.values()]], where)
    for key, value in result.items():
        if not isinstance(value, dict) or not value:
            continue
        here = f"{where}.{key}" if where else key
        if all(row == {} for row in value.values()):
            yield f"`{here}`: nothing, in {len(value)} rows"
        elif all(isinstance(row, dict) and not any(isinstance(e, dict | list) for e in row.values())
                 for row in value.values()):  # fmt: skip
            columns = list(dict.fromkeys(column for row in value.values() for column in row))
            rows = [[name, *(cell(row.get(column, "")) for column in columns)] for name, row in value.items() if row]
            yield table(["", *columns], rows, here)
        else:
            yield from tables(value, here)


def table(columns: list[str], rows: list[list[str]], where: str) -> str:
    """Return a Markdown table, with the name of the object that it shows above it."""
    lines = [f"`{where}`", ""] if where else []
    lines += [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def cell(value: object) -> str:
    """Return a value as a cell: numbers with four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def page() -> str:
    """Return the text of the page."""
    parts = [HEAD]
    for path in sorted(RESULTS.rglob("*.json"), key=lambda path: (path.stem, path.parent)):
        name = path.relative_to(RESULTS).with_suffix("").as_posix()
        content = json.loads(path.read_text(encoding="utf-8"))
        parts.append(f"## {name}\n\n{title(name)}\n")
        parts.append(f"`{content['command']}`, {content['date']}, {content['machine']}\n")
        parts += [content["note"] + "\n"] if "note" in content else []
        parts += [text + "\n" for text in tables(content["result"])]
    return "\n".join(parts)


def main() -> None:
    """Store a result, if one is given, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--add", nargs=2, metavar=("NAME", "OUTPUT"), help="keep the last line of a benchmark's output")
    parser.add_argument("--command", help="the command that was run [make bench-NAME]")
    options = parser.parse_args()
    if options.add:
        name, output = options.add
        try:
            keep(name, Path(output), options.command or f"make bench-{name}")
        except (OSError, ValueError) as error:
            sys.exit(f"results_page: {error}")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
