# SPDX-License-Identifier: Apache-2.0
"""No code decides by the words of a message: messages have codes, errors have types, columns have kinds."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("agent", "modeling", "report", "mpi_wrap", "package/quipu")

_MESSAGE = re.compile(
    r"(?:^|_)(?:advice|causes?|errors?|messages?|notes?|problems?|quality|reasons?|remarks?|said|trouble|warnings?|why)$"
)
"""Names of what holds a message, at their end."""
_METHODS = {
    "count",
    "endswith",
    "find",
    "index",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rpartition",
    "split",
    "startswith",
}
_MATCHING = {"findall", "fullmatch", "match", "search", "sub"}
_WORDS = re.compile(r"[A-Za-z]{2,}[,:;]? [A-Za-z{]{2,}|[A-Za-z]{3,}: $")
"""Several words of a language, as opposed to a name or an option."""

ALLOWED = {
    # texts of other programs and of the system
    ("agent/campaign/identity.py", "key.strip() in"): "keys of /proc/cpuinfo",
    ("agent/campaign/jobs/scheduled.py", "found.reason.split"): "reasons of a scheduler",
    ("agent/campaign/jobs/slurm.py", "re.fullmatch(pattern, reason)"): "reasons of Slurm",
    ("agent/campaign/jobs/slurm.py", "reason == 'DependencyNeverSatisfied'"): "a reason of Slurm",
    ("agent/cli/tensor/tables.py", "'conversion error' not in str(error)"): "pyarrow has one error type",
    ("agent/counters/callgrind.py", "' cache: ' in text"): "a file of Callgrind",
    ("agent/counters/callgrind.py", "text.strip().partition(' cache: ')"): "a file of Callgrind",
    ("agent/doctor.py", "'undefined symbol' in text"): "a message of the dynamic linker",
    ("agent/launch/kernel.py", "line.startswith('cpu MHz')"): "a key of /proc/cpuinfo",
    ("agent/machine/describe.py", "line.startswith('model name')"): "a key of /proc/cpuinfo",
    ("agent/source/ir.py", "one.text.startswith('ret void')"): "LLVM IR",
    ("modeling/documents.py", "str(error).partition(' - at `$')"): "msgspec has one error type",
    ("mpi_wrap/emit_fortran.py", "type_ in ("): "types of C",
    ("mpi_wrap/installation.py", ".removeprefix('SimGrid version')"): "an answer of SimGrid",
    ("modeling/short_names.py", "inside in ("): "a name in C++",
    # formats and names that are no messages
    ("modeling/priors/path_model.py", "self.basis == TIME_ONLY"): "the basis of a model, as documents have it",
    ("agent/cli/callgraph.py", "text.startswith(('digraph calls {'"): "a file format",
    ("modeling/counts/factors.py", "self.kind == 'divided size'"): "a kind of factor",
    ("modeling/root_causes.py", "run.tree.name(path).startswith('omp parallel')"): "the name of a region",
    ("report/formats/detect.py", "by_name == 'Extra-P JSON Lines'"): "the name of a format",
    ("report/formats/talp.py", "name.startswith('omp task line')"): "the name of a region",
    ("report/formats/talp.py", "name.startswith(_FORKS)"): "the name of a region",
    ("report/source_listing.py", "record.state != 'no profile'"): "the state of a rank in an archive",
}
"""Places that look at words of others, by file and a part of the expression, and whose words these are."""


def decisions(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of the expressions that compare or take apart a message, or compare with several words."""
    tree = ast.parse(source)
    constants = {
        target.id: words
        for node in tree.body
        if isinstance(node, ast.Assign) and (words := _literals(node.value))
        for target in node.targets
        if isinstance(target, ast.Name)
    }

    def has_words(node: ast.AST) -> bool:
        return any(_WORDS.search(text) for text in _literals(node) or constants.get(_name(node), []))

    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(
            isinstance(one, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for one in node.ops
        ):
            sides = [node.left, *node.comparators]
            fixed = [side for side in sides if any(_literals(side)) or _name(side).strip("_").isupper()]
            if any(map(has_words, sides)) or (fixed and any(_is_message(side) for side in sides)):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            method, value = node.func.attr, node.func.value
            matched = method in _MATCHING and _name(value) == "re" and any(map(_is_message, node.args))
            worded = method != "replace" and any(map(has_words, node.args))
            if matched or (method in _METHODS and (worded or _is_message(value))):
                yield node.lineno, ast.unparse(node)


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Call) and _name(node.func) == "str" and node.args:
        return _name(node.args[0])
    return _name(node.value) if isinstance(node, ast.Subscript) else ""


def _is_message(node: ast.AST) -> bool:
    return _MESSAGE.search(_name(node)) is not None


def _literals(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return [text for element in node.elts for text in _literals(element)]
    if isinstance(node, ast.JoinedStr):
        return ["".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)]
    return []


def test_no_code_decides_by_the_words_of_a_message() -> None:
    found, used = [], set()
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            file = path.relative_to(ROOT).as_posix()
            if file.startswith("package/quipu/") and file.count("/") > 2:
                continue  # a link to a package
            for line, text in decisions(path.read_text(encoding="utf-8")):
                allowed = {key for key in ALLOWED if key[0] == file and key[1] in text}
                used |= allowed
                if not allowed:
                    found.append(f"{file}:{line}: {text}")
    assert not found, "decide by a code (modeling/message.py) or a type:\n" + "\n".join(found)
    assert set(ALLOWED) == used, "no longer needed in ALLOWED"


def test_such_code_is_found() -> None:
    for wrong in (
        'if note.startswith("misses"): ...',
        'if "not executed" in said: ...',
        'if str(error) == "x": ...',
        '_FAR = "too far off"\nif text == _FAR: ...',
        "if _LONGER in model.notes: ...",
        "re.match(pattern, self.reason)",
    ):
        assert list(decisions(wrong)), wrong
    for right in (
        'if code == "far-off": ...',
        "if FAR.is_in(notes): ...",
        'if name.startswith("MPI_"): ...',
        "if notes: ...",
    ):
        assert not list(decisions(right)), right
