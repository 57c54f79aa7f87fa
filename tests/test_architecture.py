# SPDX-License-Identifier: Apache-2.0
"""Imports go as docs/architecture.md says: its table of parts is read here. No files import each other in a circle."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("modeling", "mpi_wrap", "report", "agent")
RUNTIME = "agent/runtime"
NATIVE = (RUNTIME, "agent/interpreter", "agent/resources", "agent/shim", "llvm_pass", "mpi_wrap/native")
EVERYTHING, C_HEADERS, NOTHING = "everything", "C headers of `runtime/`", "–"
# The roots of the packages belong to no part: there is nothing in them to import.
PACKAGE_ROOTS = {f"{package}/__init__.py" for package in PACKAGES if package != "modeling"}

Graph = Mapping[str, Mapping[str, int]]  # file → what it imports, and in which line


@cache
def parts() -> dict[str, str]:
    """Return patterns of the files of every part and, as the document has it, what the part may import."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.split("| part | task | may import |\n")[1].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[1:]]
    return {part: allowed for part, _, allowed in rows}


def patterns(part: str) -> list[str]:
    return re.findall(r"`([^`]+)`", part)


def part_of(file: str) -> str | None:
    """Return the part of a file: that which names it, else the innermost folder, else files beside folders."""
    found = []
    for part in parts():
        for pattern in patterns(part):
            if pattern.endswith("/") and file.startswith(pattern):
                found.append((len(pattern), part))
            elif file == pattern or (fnmatchcase(file, pattern) and file.count("/") == pattern.count("/")):
                found.append((len(pattern) if "*" in pattern else len(file) + 1, part))
    return max(found)[1] if found else None


def names(part: str) -> set[str]:
    """Return what a part is called in the last column: its own name, and those of the folders that it is in."""
    own = re.findall(r"^([^`]+):", part)
    return {*own} | {piece.removesuffix(".py") for pattern in patterns(part) for piece in pattern.split("/") if piece}


@cache
def may_import(part: str) -> frozenset[str]:
    """Return the parts that a part may import: itself, those that its row names, and what they may import."""
    above = list(parts())[: list(parts()).index(part)]
    allowed = parts()[part]
    if allowed == EVERYTHING:
        return frozenset(above) | {part}
    found = {part}
    for name in () if allowed in (NOTHING, C_HEADERS) else allowed.split(", "):
        named = [other for other in above if name in names(other)]
        assert named, f"docs/architecture.md: {part} may import {name!r}, which is the name of no part above"
        found |= {known for other in named for known in may_import(other)}
    return frozenset(found)


@cache
def python_imports() -> Graph:
    """Return who imports whom, imports for type checkers and inside of functions included."""
    files = [path.relative_to(ROOT).as_posix() for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    modules = {module_of(file): file for file in files}
    graph: dict[str, dict[str, int]] = {file: {} for file in sorted(files)}
    for file, imported in graph.items():
        for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
            for name in imported_names(node, file):
                target = modules.get(name) or modules.get(name.rpartition(".")[0])
                if target not in (None, file):
                    imported.setdefault(target, node.lineno)  # type: ignore[attr-defined]
    return graph


def module_of(file: str) -> str:
    return "quipu." + file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imported_names(node: ast.AST, file: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        package = ["quipu", *file.split("/")[:-1]]
        base = package[: len(package) - node.level + 1] if node.level else []
        yield from (".".join([*base, *filter(None, [node.module]), alias.name]) for alias in node.names)


@cache
def native_includes() -> Graph:
    """Return which native file includes which: found as compilers do, beside the file or in its part or the runtime.

    A header that is only in another part is found there. Those of LLVM and of the system are left out.
    """
    files = {
        path.relative_to(ROOT).as_posix(): part
        for part in NATIVE
        for path in sorted((ROOT / part).rglob("*"))
        if path.suffix in (".c", ".cpp", ".h", ".def") and "tests" not in path.parts
    }
    graph: dict[str, dict[str, int]] = {file: {} for file in files}
    for file, part in files.items():
        for number, line in enumerate((ROOT / file).read_text(encoding="utf-8").splitlines(), start=1):
            if (match := re.match(r'\s*#\s*include "([^"]+)"', line)) is None:
                continue
            places = [str(Path(file).parent), part, RUNTIME, *NATIVE]
            found = [(ROOT / place / match[1]).resolve().relative_to(ROOT).as_posix() for place in places]
            if (target := next((path for path in found if path in files), None)) is not None:
                graph[file].setdefault(target, number)
    return graph


def circles(graph: Graph) -> list[str]:
    """Return circles, one for each file that would have to stop importing another."""
    left = {file: set(imported) for file, imported in graph.items()}
    found = []
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            circle = error.args[1]  # each is imported by the next
            found.append(" ← ".join(circle))
            left[circle[1]].discard(circle[0])
        else:
            return found


def test_what_the_table_names_is_there() -> None:
    missing = [pattern for part in parts() for pattern in patterns(part) if not any(ROOT.glob(pattern))]
    assert not missing, f"docs/architecture.md names what is not there: {', '.join(missing)}"
    for part in parts():
        may_import(part)


def test_every_file_has_a_part() -> None:
    homeless = [file for file in python_imports() if file not in PACKAGE_ROOTS and part_of(file) is None]
    assert not homeless, f"in no part of docs/architecture.md: {', '.join(homeless)}"


def test_python_imports_follow_the_table() -> None:
    wrong = []
    for file, imported in python_imports().items():
        for target, line in imported.items():
            here, there = part_of(file), part_of(target)
            if here is not None and there is not None and there not in may_import(here):
                wrong.append(f"{file}:{line} imports {target}; {here} may import: {parts()[here]}")
    assert not wrong, "\n" + "\n".join(wrong)


def test_native_files_include_headers_of_their_own_part_and_of_the_runtime() -> None:
    wrong = [
        f"{file}:{line} includes {target}"
        for file, included in native_includes().items()
        for target, line in included.items()
        if not target.startswith((f"{RUNTIME}/", *(f"{part}/" for part in NATIVE if file.startswith(f"{part}/"))))
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_no_python_files_import_each_other_in_a_circle() -> None:
    found = circles(python_imports())
    assert not found, "\n" + "\n".join(found)


def test_no_native_files_include_each_other_in_a_circle() -> None:
    """A source file and its header are one unit."""
    units: dict[str, dict[str, int]] = {}
    for file, included in native_includes().items():
        unit = re.sub(r"[.](h|c|cpp)$", "", file)
        targets = {re.sub(r"[.](h|c|cpp)$", "", target): line for target, line in included.items()}
        units.setdefault(unit, {}).update({target: line for target, line in targets.items() if target != unit})
    found = circles(units)
    assert not found, "\n" + "\n".join(found)


def test_circles_are_found() -> None:
    assert circles({"a": {"b": 1}, "b": {"c": 1}, "c": {}}) == []
    (circle,) = circles({"a": {"b": 1}, "b": {"c": 1}, "c": {"a": 1}})
    assert sorted(circle.split(" ← ")[1:]) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("file", "target", "fine"),
    [
        ("modeling/pmnf/fitter.py", "modeling/experiment.py", True),
        ("modeling/pmnf/fitter.py", "modeling/priors/table.py", False),
        ("modeling/analysis.py", "report/views.py", False),
        ("report/views.py", "modeling/refine/selection.py", True),
        ("report/views.py", "agent/installation.py", False),
        ("agent/archive/read.py", "agent/source/lines.py", False),
        ("agent/merge/run.py", "agent/profile/reader.py", True),
        ("agent/merge/run.py", "modeling/analysis.py", False),
        ("agent/campaign/campaign.py", "agent/cli/main.py", False),
        ("agent/cli/main.py", "report/views.py", True),
        ("mpi_wrap/native/generated.py", "mpi_wrap/table.py", False),
    ],
)
def test_the_table_is_read_as_it_is_meant(file: str, target: str, fine: bool) -> None:
    here, there = part_of(file), part_of(target)
    assert here is not None and there is not None
    assert (there in may_import(here)) == fine


IMPORTED_ON_USE = {"agent/campaign/jobs/slurm.py"}
"""A module of an extra is the base of its classes; what needs it imports it where it is used."""


def required_modules() -> set[str]:
    """Return the top-level modules of the packages that every installation has (`dependencies` in pyproject.toml)."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {re.split(r"[<>=!~ \[;]", entry, maxsplit=1)[0].lower() for entry in project["dependencies"]}
    modules = packages_distributions()
    return {module for module, packages in modules.items() if wanted & {package.lower() for package in packages}}


def test_modules_import_at_once_only_what_every_installation_has() -> None:
    """Packages of an extra are imported where they are used."""
    known = required_modules() | set(sys.stdlib_module_names) | {"quipu", "quipu_node"}
    found = []
    for package in PACKAGES:
        for path in sorted({*(ROOT / package).rglob("*.py")} - {ROOT / name for name in IMPORTED_ON_USE}):
            for statement in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(statement, ast.Import):
                    names = [alias.name for alias in statement.names]
                elif isinstance(statement, ast.ImportFrom) and statement.level == 0:
                    names = [statement.module or ""]
                else:
                    names = []
                found += [f"{path.relative_to(ROOT)}: {name}" for name in names if name.split(".")[0] not in known]
    assert found == []


def test_a_run_loads_no_models() -> None:
    """Loading the modeling packages would delay each launch."""
    command = "import quipu.agent.campaign.repetition, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True).stdout.split()
    slow = ("quipu.modeling.pmnf", "quipu.modeling.priors", "scipy", "pandas", "sklearn", "psutil")
    assert [name for name in loaded if name.startswith(slow)] == []


def test_a_run_starts_no_threads_for_linear_algebra_and_leaves_the_environment_alone() -> None:
    """A measured program would inherit the variable; starting threads takes longer than loading numpy."""
    code = (
        "from quipu.agent.cli.quick_numpy import load_numpy; import os; load_numpy(); import numpy; "
        "print(os.environ.get('OPENBLAS_NUM_THREADS'), len(os.listdir('/proc/self/task')))"
    )
    for value in (None, "2"):
        environment = {name: text for name, text in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
        environment |= {} if value is None else {"OPENBLAS_NUM_THREADS": value}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        kept, threads = done.stdout.split()
        assert kept == str(value)
        assert value is not None or threads == "1"
