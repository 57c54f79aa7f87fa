# SPDX-License-Identifier: Apache-2.0
"""The recipes for Spack and Apptainer ask for what pyproject.toml and .ci/packages ask for."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
RECIPE = ROOT / "share" / "spack" / "spack_repo" / "quipu" / "packages" / "quipu" / "package.py"
VARIANTS = ("notebook", "plots", "cube", "schedulers")


def depended_on() -> dict[tuple[str, str], str]:
    """Return the versions that the recipe wants, by name in PyPI and variant (empty: always)."""
    found = {}
    for call in ast.walk(ast.parse(RECIPE.read_text(encoding="utf-8"))):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "depends_on":
            spec = ast.literal_eval(call.args[0])
            when = {one.arg: ast.literal_eval(one.value) for one in call.keywords if one.arg == "when"}
            name, _, version = spec.partition("@")
            if name.startswith("py-") or name == "python":
                found[name.removeprefix("py-"), when.get("when", "").removeprefix("+")] = version
    return found


def version_range(requirement: Requirement) -> str:
    """Return the versions of a requirement as Spack writes them; `<0.29` is up to 0.28, `<3` up to 2."""
    bounds = {one.operator: one.version for one in requirement.specifier}
    upper = re.sub(r"\d+$", lambda last: str(int(last[0]) - 1), bounds.get("<", ""))
    return f"{bounds['>=']}:{upper}"


def test_spack_wants_the_versions_of_pyproject() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    table = project["project"]
    wanted = {(one.name, ""): version_range(one) for one in map(Requirement, table["dependencies"])}
    for variant in VARIANTS:
        extras = map(Requirement, table["optional-dependencies"][variant])
        wanted |= {(one.name, variant): version_range(one) for one in extras}
    (backend,) = map(Requirement, project["build-system"]["requires"])
    wanted[backend.name, ""] = version_range(backend)
    wanted["python", ""] = table["requires-python"].removeprefix(">=") + ":"
    assert depended_on() == wanted


def test_spack_recipe_is_where_spack_looks() -> None:
    """Package API v2: <anything>/spack_repo/NAMESPACE/repo.yaml, packages/NAME/package.py, a class of that name."""
    repository = RECIPE.parents[2]
    assert (repository / "repo.yaml").read_text(encoding="utf-8").split()[1:] == [
        "namespace:",
        repository.name,
        "api:",
        "v2.0",
    ]
    classes = [node for node in ast.parse(RECIPE.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)]
    assert [(one.name, ast.unparse(one.bases[0])) for one in classes] == [("Quipu", "PythonPackage")]


def test_apptainer_definition_has_sections_that_a_shell_understands() -> None:
    text = (ROOT / "share" / "apptainer" / "quipu.def").read_text(encoding="utf-8")
    head, *parts = re.split(r"^%(\w+)\n", text, flags=re.MULTILINE)
    assert head.startswith("Bootstrap: docker\nFrom: debian:12\n")
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    assert {"files", "post", "environment", "runscript", "test", "help"} == sections.keys()
    for name in ("post", "environment", "runscript", "test"):
        subprocess.run(["sh", "-n"], input=sections[name], text=True, check=True)
    assert all(sections[name].split("\n")[0].strip() == "set -e" for name in ("post", "test"))
    for path in re.findall(r"\.ci/\w+(?:\.py)?", sections["post"]):
        assert (ROOT / path).exists(), path
    extras = re.search(r"'\.\[([\w,]+)\]'", sections["post"])
    assert extras is not None and set(extras[1].split(",")) == set(VARIANTS)
