# SPDX-License-Identifier: Apache-2.0
"""Install the JavaScript packages with which tests check pages and files, once, into build/ by `npm ci`."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
_WANTED = ROOT / "tests" / "npm"
_FOLDER = ROOT / "build" / "npm"
_VALIDATE = """
const Ajv = require("ajv");
const read = (path) => JSON.parse(require("fs").readFileSync(path, "utf8"));
const [schema, data] = process.argv.slice(1).map(read);
const ajv = new Ajv({ schemaId: "auto", allErrors: true, logger: false });
if (schema.$schema.includes("draft-04")) ajv.addMetaSchema(require("ajv/lib/refs/json-schema-draft-04.json"));
const valid = ajv.validate(schema, data);
console.log(JSON.stringify(valid ? [] : ajv.errors.map((one) => `${one.dataPath} ${one.message}`)));
"""


def installed() -> Path:
    """Return the folder node_modules with the packages of tests/npm/package-lock.json."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    lock, done = _WANTED / "package-lock.json", _FOLDER / "installed"
    with (_FOLDER / ".lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not done.is_file() or done.read_bytes() != lock.read_bytes():
            for file in (_WANTED / "package.json", lock):
                shutil.copy(file, _FOLDER)
            words = ["npm", "ci", "--prefix", str(_FOLDER), "--no-audit", "--no-fund", "--silent", "--ignore-scripts"]
            subprocess.run(words, check=True, timeout=600)
            shutil.copy(lock, done)
    return _FOLDER / "node_modules"


def sarif_problems(path: Path) -> list[str]:
    """Return the violations of the schema of SARIF 2.1.0 in a file."""
    schema = installed() / "@microsoft" / "jest-sarif" / "lib" / "schemas" / "sarif-2.1.0-rtm.5.json"
    words = ["node", "-e", _VALIDATE, str(schema), str(path)]
    done = subprocess.run(words, cwd=_FOLDER, capture_output=True, text=True, check=True, timeout=600)
    problems: list[str] = json.loads(done.stdout)
    return problems
