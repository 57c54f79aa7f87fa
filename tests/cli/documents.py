# SPDX-License-Identifier: Apache-2.0
"""Check the output of `--json` against its schema."""

from __future__ import annotations

import json

import jsonschema
from quipu.report.documents import json_schema

_VALIDATOR = jsonschema.Draft202012Validator(json_schema())


def expect_document(words: tuple[object, ...], out: str) -> None:
    """Fail if a command with `--json` printed anything except one document that fits its schema."""
    if "--json" in words and out:
        _VALIDATOR.validate(json.loads(out))
