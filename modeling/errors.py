# SPDX-License-Identifier: Apache-2.0
"""The errors that a user of Quipu can meet.

Every message names the file, line or option at fault and says what to do. The command line prints the message
alone and exits with `exit_code`; anything else that escapes is a defect of Quipu.
"""

from __future__ import annotations

from .message import code_of
from .printable import one_line


class QuipuError(Exception):
    """Base of all errors that a user can meet."""

    exit_code = 1

    @property
    def code(self) -> str:
        """The code of the message, as `quipu explain` takes it; empty if the message is in no catalogue."""
        return code_of(str(self))


class UsageError(QuipuError):
    """An option or argument cannot be used as given."""

    exit_code = 2


class FormatError(QuipuError):
    """A file is not what it should be: truncated, of another version, or with a syntax error."""

    def __init__(self, source: object, message: str, line: int | None = None) -> None:
        self.source = str(source)
        self.message = message
        self.line = line
        where = self.source if line is None else f"{self.source}:{line}"
        super().__init__(one_line(f"{where}: {message}"))  # both may come from the file

    def __reduce__(self) -> tuple[type[FormatError], tuple[str, str, int | None]]:
        return type(self), (self.source, self.message, self.line)  # it comes back from the processes that read


class ModelingError(QuipuError):
    """The measurements do not support the model or prediction that was asked for."""


class ArgumentError(ModelingError):
    """A text that a user gives to modeling, such as a budget or a constraint, cannot be used; the message names it."""


class MeasurementError(QuipuError):
    """A program could not be built, launched or measured."""


class SectionMissing(FormatError):
    """A program has no section of facts: it was not built with the compiler wrappers, or it was stripped."""


class EnvironmentProblem(QuipuError):
    """Something that Quipu needs is missing on this machine."""
