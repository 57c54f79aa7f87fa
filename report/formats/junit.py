# SPDX-License-Identifier: Apache-2.0
"""Write the results of a check as JUnit XML, which Jenkins, GitLab and most other CI systems show as tests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from quipu.modeling.expectations import State

from ..check_views import CheckResult

# Characters that XML 1.0 does not allow, not even escaped (section 2.2, Char).
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(title: str, results: Sequence[CheckResult]) -> str:
    """Return a test suite with one test per result. Failed results are failures, undecided results are errors."""
    failed, undecided = (sum(one.state is state for one in results) for state in (State.FAILED, State.UNDECIDED))
    counts = {"tests": str(len(results)), "failures": str(failed), "errors": str(undecided)}
    suites = ElementTree.Element("testsuites", {"name": "quipu check", **counts})
    suite = ElementTree.SubElement(suites, "testsuite", {"name": _clean(title), "skipped": "0", **counts})
    for one in results:
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": _clean(one.path), "name": _clean(one.name or one.rule), "time": "0"}
        )
        if one.file:
            case.set("file", _clean(one.file))
            case.set("line", str(one.line))
        if one.held:
            continue
        kind = "failure" if one.state is State.FAILED else "error"
        detail = ElementTree.SubElement(case, kind, {"message": _clean(one.message), "type": one.state.value})
        detail.text = _clean("\n".join([one.rule, one.message, *(cause.text for cause in one.causes)]))
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
