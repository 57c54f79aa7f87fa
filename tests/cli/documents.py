# SPDX-License-Identifier: Apache-2.0
"""Whether what `--json` printed is the one document that its schema describes."""

from __future__ import annotations

import json

import jsonschema
from quipu.report.documents import json_schema

_VALIDATOR = jsonschema.Draft202012Validator(json_schema())


def expect_document(words: tuple[object, ...], out: str) -> None:
    """Fail if a command with `--json` printed anything but its document."""
    if "--json" in words and out:
        _VALIDATOR.validate(json.loads(out))
