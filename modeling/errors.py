# SPDX-License-Identifier: Apache-2.0
"""The errors that Quipu reports to its users.

Every message names the file, line or option at fault, and what to do. The command line prints only the message and
exits with `exit_code`. Any other exception that reaches a user is a defect of Quipu.
"""

from __future__ import annotations

from .message import code_of
from .printable import one_line


class QuipuError(Exception):
    """Base of all errors that Quipu reports to its users."""

    exit_code = 1

    @property
    def code(self) -> str:
        """Return the code of the message for `quipu explain`; "" if the message has none (message.py)."""
        return code_of(str(self))


class UsageError(QuipuError):
    """An option or argument cannot be used as given."""

    exit_code = 2


class FormatError(QuipuError):
    """A file is not valid: it is truncated, of another version, or contains a syntax error."""

    def __init__(self, source: object, message: str, line: int | None = None) -> None:
        self.source = str(source)
        self.message = message
        self.line = line
        where = self.source if line is None else f"{self.source}:{line}"
        super().__init__(one_line(f"{where}: {message}"))  # one_line: both may contain text of an untrusted file

    def __reduce__(self) -> tuple[type[FormatError], tuple[str, str, int | None]]:
        return type(self), (self.source, self.message, self.line)  # for errors that a worker process sends back


class ModelingError(QuipuError):
    """The measurements do not support the requested model or prediction."""


class ArgumentError(ModelingError):
    """A text argument of modeling, such as a budget or a constraint, is not valid; the message contains it."""


class MeasurementError(QuipuError):
    """A program could not be built, launched or measured."""


class SectionMissing(FormatError):
    """A program file lacks the section that the compiler pass writes.

    It was not built with the compiler wrappers, or its sections were removed (strip).
    """


class EnvironmentProblem(QuipuError):
    """Something that Quipu needs is missing on this machine."""
