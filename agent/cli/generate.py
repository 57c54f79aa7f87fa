# SPDX-License-Identifier: Apache-2.0
"""`quipu generate`: write an MPI program whose functions have a known complexity."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from quipu.modeling.errors import UsageError
from quipu.modeling.limits import whole_number

from .options import parse_assignments, split_names
from .output import layout, say, show, show_json, write_together

if TYPE_CHECKING:
    from quipu.modeling.generator import Choices, Function

STATEMENT = "complexity.json"
"""Name of the file that states the complexity of each function of a generated program."""
_MOST_FUNCTIONS, _SHOWN = 10_000, 20
_LARGEST = {"p": 1e9, "n": 1e12}


def command(
    *,
    output: Path = typer.Option(Path("generated"), "--output", "-o", metavar="FOLDER", help="The folder to write."),
    functions: int = typer.Option(
        10, "--functions", min=1, max=_MOST_FUNCTIONS, metavar="N", help="Number of functions."
    ),
    seed: int = typer.Option(
        0, "--seed", metavar="NUMBER", help="Seed of the random choice: equal seeds give equal functions."
    ),
    specification: Path | None = typer.Option(
        None, "--spec", metavar="FILE", help="A TOML file that specifies the functions, instead of a random choice."
    ),
    operations: list[str] = typer.Option(
        [],
        "--operation",
        metavar="NAME,...",
        help="Choose from these operations: none, barrier, bcast, allreduce, send_recv …",
    ),
    exponents: list[str] = typer.Option(
        [], "--exponents", metavar="I,...", help="Choose from these exponents (the set I), such as 1/2,1,3/2."
    ),
    logarithms: list[str] = typer.Option(
        [], "--logarithms", metavar="J,...", help="Choose from these powers of logarithms (the set J), such as 0,1."
    ),
    smallest: list[str] = typer.Option(
        ["p=128,n=8000"], "--from", metavar="NAME=NUMBER,...", help="p and n of the smallest run."
    ),
    largest: list[str] = typer.Option(
        ["p=4096,n=48000"], "--to", metavar="NAME=NUMBER,...", help="p and n of the largest run."
    ),
    most_steps: float = typer.Option(
        3e8,
        "--most-steps",
        metavar="NUMBER",
        show_default="3e8",
        help="Largest number of steps of one function in the largest run (2 ns per step).",
    ),
    force: bool = typer.Option(False, "--force", help="Overwrite files that quipu generate did not write."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Write an MPI program in C++ whose functions compute and communicate with a given complexity.

    The file complexity.json in the folder states the complexity of each function. The program verifies its results.
    docs/generate.md describes the specifications and complexity.json.

    \b
    Example: quipu generate --functions 20 --seed 1 -o bench && make -C bench MPICXX=quipu-mpic++
    """
    from quipu.modeling.generator import choose_functions, program
    from quipu.modeling.generator.emit import words
    from quipu.report.json_views import document_json
    from quipu.report.terminal import tables

    if specification is not None:
        chosen, origin = _read(specification), None
    else:
        choices = _choices(operations, exponents, logarithms, smallest, largest, most_steps)
        chosen, origin = choose_functions(functions, seed, choices), seed
    texts = program(chosen, origin)
    _write(output, texts, force)
    if as_json:
        show_json(document_json("generated", str(output), functions=json.loads(texts[STATEMENT])["functions"]))
        return
    rows = [(function.name, *words(function)) for function in chosen[:_SHOWN]]
    show([tables.generated_table(rows, layout())])
    if len(chosen) > _SHOWN:
        say(f"{len(chosen) - _SHOWN} further functions are not shown (complexity.json has all)")
    say(f"wrote {output}: {len(chosen)} functions; build them with: make -C {output} MPICXX=quipu-mpic++")


def _read(path: Path) -> list[Function]:
    from quipu.modeling.documents import toml_of
    from quipu.modeling.generator import functions_of
    from quipu.modeling.limits import reading_file

    if not path.is_file():
        raise UsageError(f"--spec {path}: the file does not exist")
    with reading_file(path) as content:
        return functions_of(toml_of(content, path), path)


def _choices(
    operations: list[str],
    exponents: list[str],
    logarithms: list[str],
    smallest: list[str],
    largest: list[str],
    most_steps: float,
) -> Choices:
    from quipu.modeling.documents import fraction_of
    from quipu.modeling.generator import Choices, Operation, too_steep

    known = {operation.value: operation for operation in Operation}
    names = split_names(operations)
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"--operation {unknown[0]!r}: choose from {', '.join(known)}")
    try:
        powers = [fraction_of(text) for text in split_names(exponents)]
        if exponents and not powers:
            raise ValueError
    except ValueError:
        raise UsageError(f"--exponents {','.join(exponents)!r}: write numbers or fractions, such as 1/2,1,2") from None
    logs = [number for text in split_names(logarithms) if (number := whole_number(text, 1)) is not None]
    if len(logs) < len(split_names(logarithms)) or max(logs, default=0) > 4 or (logarithms and not logs):
        raise UsageError(f"--logarithms {','.join(logarithms)!r}: write whole numbers from 0 to 4, such as 0,1,2")
    low, high = _range_end("--from", smallest), _range_end("--to", largest)
    if any(low[name] >= high[name] for name in low):
        raise UsageError("--from must be below --to in p and in n")
    if not 1e3 <= most_steps <= 1e12:
        raise UsageError("--most-steps: give a number from 1000 to 1e12")
    default = Choices()
    choices = Choices(
        low,
        high,
        powers or default.exponents,
        logs or default.logarithms,
        [known[name] for name in names] or default.operations,
        most_steps=most_steps,
    )
    if powers and (steep := too_steep(choices)):
        how = "allow more steps, smaller exponents, or a smaller range of points"
        raise UsageError(f"--exponents {steep[0]}: no computation can grow so fast from --from to --to: {how}")
    return choices


def _range_end(option: str, texts: list[str]) -> dict[str, float]:
    """Return p and n from the value of --from or --to.

    Raises UsageError if they are missing, or outside of the limits of generated programs (main.cpp).
    """
    values = parse_assignments(option, texts)
    if set(values) != set(_LARGEST):
        raise UsageError(f"{option}: give exactly p and n, such as {option} p=128,n=8000")
    for name, most in _LARGEST.items():
        if not 2 <= values[name] <= most or values[name] != int(values[name]):
            raise UsageError(f"{option}: {name} must be a whole number from 2 to {most:g}, not {values[name]:g}")
    return values


def _write(folder: Path, texts: dict[str, str], force: bool) -> None:
    """Write the files of a program into a folder, and remove the remaining files of an earlier program there.

    texts: name of the file → content. Raises UsageError if the folder contains other files and `force` is not set.
    """
    from quipu.modeling.generator.statement import SCHEMA

    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file: give another folder with -o")
    marker = folder / STATEMENT
    ours = marker.is_file() and SCHEMA in marker.read_text(encoding="utf-8", errors="replace")
    if folder.is_dir() and any(folder.iterdir()) and not ours and not force:
        raise UsageError(f"{folder} has files that no generator wrote: give another folder with -o, or --force")
    folder.mkdir(exist_ok=True)
    write_together({folder / name: texts[name] for name in sorted(texts)})
    if ours:
        for old in folder.glob("functions_*.cpp"):
            if old.name not in texts:
                old.unlink()
