# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin that makes tests from the expectations in files `expectations.toml` or `*.expectations.toml`.

pytest loads the plugin in every environment in which Quipu is installed. The plugin therefore imports modules of Quipu
only if it finds a file of expectations. The options `--quipu-experiment` and `--quipu-baseline` replace the experiment
and the baseline that the file names.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from quipu.report.check_views import CheckResult

_SUFFIX = "expectations.toml"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this plugin."""
    group = parser.getgroup("quipu", "expectations of effort")
    group.addoption("--quipu-experiment", metavar="DIR", help="the experiment to compare with expectations.toml")
    group.addoption("--quipu-baseline", metavar="FILE", help="the baseline of expectations.toml")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Return a collector for a file of expectations; None for any other file."""
    if file_path.name == _SUFFIX or file_path.name.endswith(f".{_SUFFIX}"):
        return ExpectationsCollector.from_parent(parent, path=file_path)
    return None


class ExpectationsCollector(pytest.File):
    """One file of expectations."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield a test for each expectation and each call path to which it applies."""
        from quipu.agent.cli.check import results_of
        from quipu.modeling.errors import QuipuError

        def given(option: str) -> Path | None:
            value = self.config.getoption(option)
            return None if value is None else Path(value)

        try:
            results = results_of(self.path, given("--quipu-experiment"), given("--quipu-baseline"))
        except QuipuError as error:
            raise self.CollectError(str(error)) from None
        for result in results:
            yield ExpectationItem.from_parent(self, name=result.title, result=result)


class ExpectationItem(pytest.Item):
    """The test of one expectation for one call path."""

    def __init__(self, *, result: CheckResult, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.result = result

    def runtest(self) -> None:
        """Fail if the expectation does not hold or is undecided."""
        if not self.result.held:
            lines = [self.result.rule, self.result.message, *(cause.text for cause in self.result.causes)]
            pytest.fail("\n".join([f"{self.result.state.value}: {self.result.path}", *lines]), pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the file of expectations, no line, and the name of the test."""
        return self.path, None, self.name
