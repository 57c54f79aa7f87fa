# SPDX-License-Identifier: Apache-2.0
"""Python functions as regions, with every interpreter at hand."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from measured import LAUNCH, PROGRAMS
from patience import PATIENCE
from peers import needs
from quipu.agent.campaign.repetition import LaunchOptions, run
from quipu.agent.counters.python_paths import VARIABLE, read_paths
from quipu.agent.installation import native_file
from quipu.agent.merge.experiment import load_experiment
from quipu.agent.profile.reader import ProcessProfile, read_profile
from quipu.modeling.errors import MeasurementError

FUNCTIONS = PROGRAMS / "functions.py"


def interpreter(minor: int) -> str | None:
    """Return Python 3.minor: that of PATH, or of pyenv, whose commands on PATH start only where a folder asks so."""
    found = shutil.which(f"python3.{minor}")
    is_shim = found is not None and Path(found).parent.name == "shims"
    kept = Path(found).parents[1] if found and is_shim else Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    of_pyenv = sorted(kept.glob(f"versions/3.{minor}.*/bin/python3.{minor}"))
    if found is None or is_shim:
        return str(of_pyenv[-1]) if of_pyenv else None
    return found


# With the profile function of 3.11 and before, and with sys.monitoring.
OTHERS = {minor: interpreter(minor) for minor in (10, 11, 12, 13, 14) if minor != sys.version_info.minor}
PYTHONS = [sys.executable, *filter(None, OTHERS.values())]


def measure(command: list[str], folder: Path, variables: dict[str, str]) -> ProcessProfile:
    environment = {**os.environ, "QUIPU_DIR": str(folder), **variables}
    subprocess.run([str(native_file("quipu-exec")), *command], env=environment, check=True, timeout=PATIENCE)
    (path,) = folder.glob("*.quipu")  # no profile of the interpreter that the program starts
    profile = read_profile(path)
    assert not profile.problems
    return profile


def visits_of(profile: ProcessProfile) -> Counter[tuple[str, ...]]:
    """Visits per call path, summed over threads; paths begin with the outermost function of the program."""
    paths: list[tuple[str, ...]] = []
    visits: Counter[tuple[str, ...]] = Counter()
    for node, number in enumerate(profile.region):
        parent = int(profile.parent[node])
        above = paths[parent] if parent >= 0 else ()
        region = profile.regions.get(int(number))
        own = region is not None and (region.name.startswith("__main__.") or above != ())
        paths.append((*above, region.name.removeprefix("__main__.")) if own and region is not None else above)
        if own:
            visits[paths[-1]] += int(profile.values["visits"][node])
    return visits


@pytest.mark.parametrize("minor", OTHERS)
def test_interpreters_at_hand_are_measured(minor: int) -> None:
    """The tests below run with all of them."""
    if OTHERS[minor] is None:
        pytest.skip(f"Python 3.{minor} is not installed: its functions, imports and call paths were not measured")
    assert OTHERS[minor] in PYTHONS


@pytest.mark.parametrize("python", PYTHONS)
def test_functions_are_regions(python: str, tmp_path: Path) -> None:
    check_functions(measure([python, str(FUNCTIONS)], tmp_path, {"QUIPU_PYTHON": "1"}))


def check_functions(profile: ProcessProfile) -> None:
    """Check the visits of what functions.py calls."""
    visits = visits_of(profile)
    above = ("<module>", "main")
    method, key = "Body.method", "Body.key"
    assert visits[above] == 1
    assert visits[*above, method] == 10
    assert visits[*above, method, key] == visits[*above, method, key, "leaf"] == 50
    assert visits[*above, method, "Body.method.<locals>.<lambda>"] == 50
    assert visits[*above, "twice"] == visits[*above, "twice@2"] == 1
    assert visits[*above, "Other.method"] == visits[*above, "Other.size"] == visits[*above, "Other.size@2"] == 1
    assert visits[*above, "produce"] == 40  # each resumption
    assert visits[*above, "produce", "leaf"] == 30
    assert visits[*above, "catches"] == visits[*above, "catches", "leaf"] == 10
    assert visits[*above, "catches", "fails"] == 40  # recursion folds
    assert visits[*above, "leaves_generator", "leaf"] == visits[*above, "leaves_generator"] == 10
    assert visits[*above, "leaves_generator", "produce", "leaf"] == 10
    assert visits[*above, "after_all"] == visits[*above, "after_all", "leaf"] == 1
    assert sum(count for path, count in visits.items() if path[-2:] == (key, "leaf") and path[:2] != above) == 14
    assert sum(count for path, count in visits.items() if path[-2:] == ("waits", "leaf")) == 1
    region = next(region for region in profile.regions.values() if region.name == "__main__.leaf")
    assert (region.file, region.line) == (str(FUNCTIONS), FUNCTIONS.read_text().splitlines().index("def leaf(x):") + 1)


IMPORTING = """
import dataclasses
import json
import own_module


@dataclasses.dataclass
class Point:
    x: int = 0


def compute():
    import decimal
    return json.dumps([own_module.work(), Point().x])


compute()
"""


@pytest.mark.parametrize("python", PYTHONS)
def test_imports_and_insides_of_the_library_belong_to_who_calls_them(python: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(IMPORTING)
    (tmp_path / "own_module.py").write_text("def work():\n    return 1\n\n\nwork()\n")
    visits = visits_of(measure([python, str(program)], tmp_path, {"QUIPU_PYTHON": "1"}))
    imports, compute = ("<module>", "(imports)"), ("<module>", "compute")
    assert visits[*imports, "own_module.<module>", "own_module.work"] == 1
    assert visits[*compute, "own_module.work"] == visits[*compute, "json.dumps"] == 1
    assert visits[*compute, "(imports)"] >= 1
    names = {path[-1] for path in visits if path[0] == "<module>"}
    assert {name for name in names if name.startswith(("json.", "dataclasses."))} == {
        "json.dumps",
        "dataclasses.dataclass",
    }
    assert not any(name.startswith(("decimal.", "re.", "inspect.")) for name in names)


def test_all_functions_are_regions_if_that_is_asked_for(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import json\njson.dumps([1], indent=1)\n")
    visits = visits_of(measure([sys.executable, str(program)], tmp_path, {"QUIPU_PYTHON": "all"}))
    names = {path[-1] for path in visits}
    assert {"json.<module>", "json.dumps", "json.encoder.JSONEncoder.encode"} <= names and "(imports)" not in names


POOLS = """
import concurrent.futures, multiprocessing, sys


def work(n):
    return n + 1


if __name__ == "__main__":
    how = sys.argv[1]
    if how == "futures":
        with concurrent.futures.ProcessPoolExecutor(2) as pool:
            print(sum(pool.map(work, range(8))))
    elif how == "left behind":
        print(sum(multiprocessing.Pool(2).map(work, range(8))))
    else:
        with multiprocessing.get_context(how).Pool(2) as pool:
            print(sum(pool.map(work, range(8))))
"""


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver", "futures", "left behind"])
def test_functions_in_pools_of_processes_are_counted_and_the_run_is_complete(how: str, tmp_path: Path) -> None:
    (tmp_path / "pools.py").write_text(POOLS)
    options = LaunchOptions(python=True, folder=tmp_path, say=lambda text: None)
    archive = run([sys.executable, "pools.py", how], {}, None, tmp_path / "runs", options)
    assert archive.metadata.complete and archive.metadata.ranks == 1
    of_work = [path for path in range(len(archive.tree)) if archive.tree.name(path).endswith("main__.work")]
    assert archive.statistics["visits"].sum[of_work].sum() == 8


def test_a_changed_module_is_another_program(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import json\nimport solver\nsolver.work(json.loads('3'))\n")
    options = LaunchOptions(python=True, folder=tmp_path, say=lambda text: None)
    for factor in (1, 2):
        (tmp_path / "solver.py").write_text(f"def work(n):\n    return {factor} * n\n")
        archive = run([sys.executable, "app.py"], {}, None, tmp_path / "runs", options)
        assert archive.metadata.fingerprint is not None
        assert "__init__.py" not in " ".join(archive.metadata.fingerprint.programs)  # of the standard library
    with pytest.raises(MeasurementError, match=r"solver\.py: two builds"):
        load_experiment(tmp_path / "runs")


def test_functions_have_no_regions_unless_asked_for(tmp_path: Path) -> None:
    environment = {**os.environ, "QUIPU_DIR": str(tmp_path)}
    subprocess.run([str(native_file("quipu-exec")), sys.executable, str(FUNCTIONS)], env=environment, check=True)
    assert list(tmp_path.glob("*.quipu")) == []


def test_a_filter_leaves_functions_out(tmp_path: Path) -> None:
    filter_file = tmp_path / "filter"
    filter_file.write_text("SCOREP_REGION_NAMES_BEGIN\n  EXCLUDE *\n  INCLUDE __main__.main\nSCOREP_REGION_NAMES_END\n")
    variables = {"QUIPU_PYTHON": "1", "QUIPU_FILTER": str(filter_file)}
    assert visits_of(measure([sys.executable, str(FUNCTIONS)], tmp_path, variables)) == {("main",): 1}


def test_the_sitecustomize_of_the_user_runs_too(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.stderr.write('the one of the user\\n')\n")
    environment = {**os.environ, "QUIPU_DIR": str(tmp_path), "QUIPU_PYTHON": "1", "PYTHONPATH": str(tmp_path)}
    command = [str(native_file("quipu-exec")), sys.executable, "-c", "import sys; print(len(sys.path))"]
    result = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    assert result.stderr == "the one of the user\n"


@needs("mpi4py")
def test_mpi_calls_are_below_the_functions_that_make_them(library: Path, tmp_path: Path) -> None:
    words = [f"QUIPU_DIR={tmp_path}", "QUIPU_PYTHON=1", f"QUIPU_PRELOAD={library}"]
    command = ["mpirun", "-n", "2", "env", *words, str(native_file("quipu-exec")), sys.executable]
    program = str(PROGRAMS / "functions_mpi.py")
    subprocess.run([*command, program], env={**os.environ, **LAUNCH}, check=True, timeout=PATIENCE)
    profiles = [read_profile(path) for path in tmp_path.glob("*.quipu")]
    assert len(profiles) == 2
    for profile in profiles:
        visits = visits_of(profile)
        assert visits["<module>", "main", "exchange"] == 5
        assert visits["<module>", "main", "MPI_Barrier"] == 1
        assert any(path[:3] == ("<module>", "main", "exchange") and "MPI_" in path[3] for path in visits if path[3:])


@pytest.mark.parametrize("python", PYTHONS)
def test_call_paths_have_functions_of_their_own_for_valgrind(python: str, tmp_path: Path) -> None:
    environment = {**os.environ, VARIABLE: f"{tmp_path}/paths-", "PYTHONPATH": str(native_file("python"))}
    subprocess.run([python, str(FUNCTIONS)], env=environment, check=True, timeout=PATIENCE)
    (file,) = (path for path in tmp_path.glob("paths-*") if "after_all" in path.read_text())
    paths = read_paths(file)
    names: list[tuple[str, ...]] = []
    for path in paths.values():
        above = names[path.parent] if path.parent >= 0 else ()
        names.append((*above, path.name) if path.file == str(FUNCTIONS) else above)
    above = ("<module>", "main")
    method = "Body.method" if "Body.method" in file.read_text() else "method"  # as Python 3.10 and older keep it
    key = "Body.key" if "Body.key" in file.read_text() else "key"
    expected = {(*above, method, key, "leaf"), (*above, "produce", "leaf"), (*above, "catches", "fails")}
    expected |= {(*above, "leaves_generator", "produce", "leaf"), (method, key, "leaf"), (*above, "after_all", "leaf")}
    assert expected <= set(names)
    assert (*above, "catches", "fails", "fails") not in names  # as in profiles
    assert not any(name[-1] == "child" for name in names if name)  # no call paths of what the program starts
    leaf = FUNCTIONS.read_text().splitlines().index("def leaf(x):") + 1
    assert {path.line for path in paths.values() if path.name == "leaf"} == {leaf}
