# SPDX-License-Identifier: Apache-2.0
"""Write the results of a check as SARIF 2.1.0 (OASIS, 27 March 2020), which GitHub and others show in the source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from quipu.modeling.expectations import State

from ..check_views import CheckResult

_RULES = {
    "growth": "Effort grows faster than expected",
    "bound": "Effort is above its bound",
    "baseline": "Effort differs from the baseline",
}


def sarif_json(results: Sequence[CheckResult], root: Path, version: str, beside: Path) -> dict[str, Any]:
    """Return a SARIF log with one result for each expectation that does not hold.

    root: paths of files in this folder are written relative to it. version: of Quipu. beside: the file of expectations.
    It is the location of results without a source file, because viewers do not show results without a location.
    """
    names = list(_RULES)
    driver = {
        "name": "quipu",
        "version": version,
        "rules": [{"id": f"quipu/{name}", "shortDescription": {"text": text}} for name, text in _RULES.items()],
    }
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)*", version):
        del driver["version"]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {"SRCROOT": {"description": {"text": "the working folder of quipu"}}},
                "results": [_result(one, names, root, beside) for one in results if not one.held],
            }
        ],
    }


def _result(one: CheckResult, names: Sequence[str], root: Path, beside: Path) -> dict[str, Any]:
    lines = [f"{one.path}: {one.rule}: {one.message}", *(cause.text for cause in one.causes)]
    places = [(cause.file, cause.line) for cause in one.causes if cause.file]
    place = (one.file, one.line) if one.file else next(iter(places), (str(beside), 0))
    return {
        "ruleId": f"quipu/{one.kind}",
        "ruleIndex": names.index(one.kind),
        "level": "error" if one.state is State.FAILED else "warning",
        "message": {"text": "\n".join(lines)},
        "locations": [_location(*place, root, one.path)],
        "relatedLocations": [
            {"id": number, **_location(cause.file, cause.line, root), "message": {"text": cause.text}}
            for number, cause in enumerate((cause for cause in one.causes if cause.file), start=1)
        ],
        "partialFingerprints": {"quipuExpectation/v1": f"{one.path}: {one.rule}"},
    }


def _location(file: str, line: int, root: Path, label: str = "") -> dict[str, Any]:
    path = Path(file)
    physical: dict[str, Any]
    if path.is_absolute() and not path.is_relative_to(root):
        physical = {"artifactLocation": {"uri": path.as_uri()}}
    else:
        relative = path.relative_to(root) if path.is_absolute() else path
        physical = {"artifactLocation": {"uri": quote(relative.as_posix()), "uriBaseId": "SRCROOT"}}
    if line:
        physical["region"] = {"startLine": line}
    location: dict[str, Any] = {"physicalLocation": physical}
    if label:
        location["logicalLocations"] = [{"fullyQualifiedName": label, "kind": "function"}]
    return location
