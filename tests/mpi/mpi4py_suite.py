# SPDX-License-Identifier: Apache-2.0
"""Run mpi4py's own test suite without and with the PMPI library, and compare the results (docs/mpi4py-tests.md).

    python tests/mpi/mpi4py_suite.py --python VENV/bin/python --suite mpi4py-4.1.2/test --launcher mpirun

Several modules run in one process. If this process ends early or its results differ, each module runs again in a
separate process, so that a module that hangs does not stop others. The last line is one JSON object: `differences`
(bound: 0) and the counts of results.
The exit code is 0 if there is no difference.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from launching import YIELDING
from quipu.mpi_wrap import describe_mpicc, mpi_library

LAUNCH = YIELDING
# Each rank has a separate output file; the rank is that of the launcher.
RANK_SHELL = 'exec "$@" > "$QUIPU_SUITE_OUTPUT.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" 2>&1'
RESULT = re.compile(
    r"^(?:\S+@\S+ )?(?P<test>\w+ \([\w.]+\))(?P<middle>.*?) \.\.\. (?P<rest>.*?)(?P<result>ok|FAIL|ERROR|skipped|"
    r"expected failure)\b",
    re.MULTILINE | re.DOTALL,
)


Results = dict[str, str]  # of each test on each rank, and of each module
HANGS = "hangs"
ENDS = ("exit code 0", "exit code 1")  # all tests ran


def run_modules(
    arguments: argparse.Namespace, modules: Sequence[str], ranks: int, variables: dict[str, str]
) -> Results:
    """Run modules of the suite in one process per rank; a hang ends them and is their result."""
    together = " ".join(modules)
    with tempfile.TemporaryDirectory() as name:
        output = Path(name) / "rank"
        words = [*(f"{key}={value}" for key, value in variables.items()), f"QUIPU_SUITE_OUTPUT={output}"]
        pattern = rf"(^|/)({'|'.join(modules)})\.py$"
        test = [str(arguments.python), "main.py", "-v", "-i", pattern, *arguments.options]
        process = subprocess.Popen(
            [arguments.launcher, "-n", str(ranks), "env", *words, "sh", "-c", RANK_SHELL, "sh", *test],
            cwd=arguments.suite,
            env={**os.environ, **LAUNCH},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            code = process.wait(arguments.timeout * len(modules))
            results = dict.fromkeys(modules, f"exit code {code}")
        except subprocess.TimeoutExpired:
            results = dict.fromkeys(modules, HANGS)
            process.terminate()
            process.wait()
        for rank in range(ranks):
            path = output.with_suffix(f".{rank}")
            text = path.read_text(errors="replace") if path.exists() else ""
            if arguments.keep:
                kind = "with" if "LD_PRELOAD" in variables else "without"
                (arguments.keep / f"{together[:80]}-{kind}-{ranks}-{rank}.txt").write_text(text)
            # The number of results before the time limit depends on the load of the machine.
            for found in RESULT.finditer(text if HANGS not in results.values() else ""):
                results[f"rank {rank}, {found['test']}"] = found["result"]
    return results


def compare(
    arguments: argparse.Namespace, modules: Sequence[str], ranks: int, library: Path
) -> tuple[Results, Results]:
    """Return the results of modules without and with the wrappers."""
    plain = run_modules(arguments, modules, ranks, {})
    with tempfile.TemporaryDirectory() as raw:
        variables = {"LD_PRELOAD": str(library), "QUIPU_DIR": raw, "QUIPU_MPI_WAIT": "sample"}
        wrapped = run_modules(arguments, modules, ranks, variables)
    if len(modules) == 1 or (plain == wrapped and all(plain[module] in ENDS for module in modules)):
        return plain, wrapped
    parts = [compare(arguments, [module], ranks, library) for module in modules]
    plain, wrapped = ({key: value for part in parts for key, value in part[i].items()} for i in (0, 1))
    return plain, wrapped


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--python", type=lambda text: Path(text).absolute(), required=True, help="has mpi4py")
    parser.add_argument("--suite", type=Path, required=True, help="the folder test/ of mpi4py's sources")
    parser.add_argument("--launcher", default="mpirun")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--timeout", type=float, default=60, help="seconds for one module")
    parser.add_argument("--together", type=int, default=12, help="how many modules run in one process")
    parser.add_argument("--modules", default="", help="regular expression: the modules to run")
    parser.add_argument("--keep", type=Path, help="folder that gets the output of every rank")
    parser.add_argument("options", nargs="*", help="for mpi4py's main.py, after --")
    arguments = parser.parse_args()
    library = mpi_library(describe_mpicc(re.sub("mpi(run|exec)", "mpicc", arguments.launcher)))
    modules = sorted(path.stem for path in arguments.suite.glob("test_*.py"))
    modules = [module for module in modules if re.search(arguments.modules, module)]
    differences = 0
    counts: dict[str, dict[str, dict[str, int]]] = {}
    for ranks in arguments.ranks:
        plain: Results = {}
        wrapped: Results = {}
        for first in range(0, len(modules), arguments.together):
            of_group = compare(arguments, modules[first : first + arguments.together], ranks, library)
            plain |= of_group[0]
            wrapped |= of_group[1]
        changed = [key for key in sorted({*plain, *wrapped}) if plain.get(key) != wrapped.get(key)]
        for key in changed:
            print(f"{ranks} ranks, {key}: {plain.get(key)} without, {wrapped.get(key)} with", flush=True)
        counts[str(ranks)] = {"without": Counter(plain.values()), "with": Counter(wrapped.values())}
        print(f"{ranks} ranks: {len(plain)} results, {len(changed)} differences", flush=True)
        differences += len(changed)
    print(json.dumps({"differences": differences, "counts": counts}))
    return 1 if differences else 0


if __name__ == "__main__":
    raise SystemExit(main())
