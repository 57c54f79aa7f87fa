# SPDX-License-Identifier: Apache-2.0
"""An editable installation, a source distribution and a wheel contain each file once, and nothing beside the clone.

The tests need no network: the build tools and the dependencies are those of the environment that runs the tests. No
compiler is found, so that only the Python package is built, within seconds; `make dist` checks the complete wheel.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from peers import needs

ROOT = Path(__file__).parents[2]
NEIGHBOURS = ("extrap", "numpy", "quipu", "tests", "neighbour")
NO_COMPILER = {**os.environ, "CC": "/no-compiler", "CXX": "/no-compiler", "PYTHONPATH": ""}
PACKAGES = ("agent", "modeling", "mpi_wrap", "report")
OFFLINE = ("--no-build-isolation", "--no-deps", "--no-index", "--ignore-installed", "--quiet")
LOOK = """
import importlib.util, json, sys
names = sys.argv[1:]
import quipu, quipu.agent.cli.entry, quipu.modeling.metrics, quipu.mpi_wrap.library, quipu.report.documents
specs = {name: importlib.util.find_spec(name) for name in names}
print(json.dumps({
    "path": sys.path,
    "quipu": quipu.__file__,
    "entry": quipu.agent.cli.entry.__file__,
    "found": {name: spec.origin for name, spec in specs.items() if spec},
}))
"""


def run(*command: object) -> str:
    """Run a command in a machine without compilers and return what it prints."""
    done = subprocess.run([str(word) for word in command], env=NO_COMPILER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the archive that is built from the clone."""
    folder = tmp_path_factory.mktemp("sdist")
    build = "import sys; from scikit_build_core.build import build_sdist; print(build_sdist(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", build, folder], cwd=ROOT, env=NO_COMPILER, check=True, capture_output=True)
    (archive,) = folder.glob("quipu-*.tar.gz")
    return archive


@pytest.fixture
def source(sdist: Path, tmp_path: Path) -> Path:
    """Return the unpacked source distribution; beside it are folders with the names of packages."""
    for name in NEIGHBOURS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text('raise ImportError("a neighbour of the source folder")\n')
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path)
    return tmp_path / sdist.name.removesuffix(".tar.gz")


@pytest.fixture
def environment(tmp_path: Path) -> Callable[[], Path]:
    """Return a function that makes an environment with the dependencies of Quipu but without Quipu."""

    def make() -> Path:
        folder = tmp_path / "environment"
        venv.EnvBuilder().create(folder)
        (packages,) = folder.glob("lib/python3*/site-packages")
        # A path in such a file is not searched for further .pth files: the editable Quipu there has no effect.
        (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
        return folder

    return make


@pytest.fixture(scope="session")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel that is built from the source distribution."""
    folder = tmp_path_factory.mktemp("wheel")
    offline = ("--no-build-isolation", "--no-deps", "--no-index", "--quiet")
    run(sys.executable, "-m", "pip", "wheel", *offline, "--wheel-dir", folder, sdist)
    (archive,) = folder.glob("quipu-*.whl")
    return archive


def look(python: Path) -> dict[str, object]:
    # -I: neither the working directory nor PYTHONPATH
    found: dict[str, object] = json.loads(run(python, "-I", "-c", LOOK, *NEIGHBOURS))
    return found


def tracked(*folders: str) -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z", *folders], cwd=ROOT, capture_output=True, text=True, check=True)
    return sorted(path for path in listed.stdout.split("\0") if path and (ROOT / path).exists())


def test_the_source_distribution_holds_every_file_once_and_the_links(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        members = {member.name.partition("/")[2]: member for member in archive.getmembers()}
        assert len(members) == len(archive.getmembers())
    for name in PACKAGES:
        link = members[f"package/quipu/{name}"]
        assert link.issym() and link.linkname == f"../../{name}"
    assert set(tracked(*PACKAGES)) <= set(members)
    assert not [path for path in members if path.startswith(tuple(f"package/quipu/{name}/" for name in PACKAGES))]


def test_the_wheel_holds_every_file_of_the_packages_once(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert len(names) == len(set(names))
    package = sorted(name for name in names if name.startswith("quipu/"))
    own = [path.removeprefix("package/") for path in tracked("package") if not (ROOT / path).is_symlink()]
    assert package == sorted([*own, *(f"quipu/{path}" for path in tracked(*PACKAGES))])


def test_an_editable_installation_adds_only_the_package_folder(source: Path, environment: Callable[[], Path]) -> None:
    python = environment() / "bin" / "python"
    run(python, "-m", "pip", "install", *OFFLINE, "--editable", source)
    found = look(python)
    assert [path for path in found["path"] if path.startswith(str(source))] == [str(source / "package")]  # type: ignore[attr-defined]
    assert str(source.parent) not in found["path"]  # type: ignore[operator]
    assert found["quipu"] == str(source / "package" / "quipu" / "__init__.py")
    assert Path(str(found["entry"])).samefile(source / "agent" / "cli" / "entry.py")
    _no_neighbour(found, source.parent)


def test_a_wheel_is_installed_without_its_source(wheel: Path, environment: Callable[[], Path]) -> None:
    home = environment()
    run(home / "bin" / "python", "-m", "pip", "install", *OFFLINE, wheel)
    found = look(home / "bin" / "python")
    assert Path(str(found["quipu"])).is_relative_to(home)
    assert Path(str(found["entry"])).is_relative_to(home)
    _no_neighbour(found, wheel.parent)


TYPED = """
from pathlib import Path

import quipu

try:
    run: quipu.RunArchive = quipu.run(["mpirun", "-n", "4", "./heat", "64"], {"p": 4, "n": 64}, output=Path("heat"))
    result: quipu.CampaignResult = quipu.campaign("heat.toml", quiet=True)
except quipu.RunFailed as error:
    failed: quipu.RunArchive | None = error.archive
except quipu.QuipuError as problem:
    code: int = problem.exit_code
experiment = quipu.open("heat")
assert isinstance(experiment, quipu.Experiment)
names: tuple[str, ...] = experiment.parameters
models: quipu.Analysis = quipu.model(experiment)
entry = models.models("time")[0].model
formula: str = entry.reason if isinstance(entry, quipu.NoModel) else str(entry)
prediction: quipu.Evaluation = quipu.predict(models, {"p": 1024, "n": 320}, metric="time")
total: quipu.Prediction = prediction.total
first: quipu.Ranked = prediction.ranking()[0]
share: float = first.share
"""
WRONG = {
    "quipu.predict(models, 1024)": "arg-type",
    "quipu.model(run)": "arg-type",
    'quipu.measure("./heat")': "attr-defined",
    'quipu.open("heat").parameters': "union-attr",
}


@needs("mypy")
def test_programs_of_users_are_type_checked(wheel: Path, environment: Callable[[], Path], tmp_path: Path) -> None:
    python = environment() / "bin" / "python"
    run(python, "-m", "pip", "install", *OFFLINE, wheel)
    (tmp_path / "program.py").write_text("\n".join([TYPED.strip(), *WRONG, ""]))
    options = ["--strict", "--python-executable", str(python), "--cache-dir", str(tmp_path / "cache")]
    command = [sys.executable, "-m", "mypy", *options, "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.splitlines() if ": error: " in line]
    first = len(TYPED.strip().splitlines()) + 1
    for line, error, kind in zip(range(first, first + len(WRONG)), found, WRONG.values(), strict=True):
        assert error.startswith(f"program.py:{line}: ") and error.endswith(f"[{kind}]"), done.stdout


def test_the_command_works_through_the_link_that_pipx_makes(
    wheel: Path, environment: Callable[[], Path], tmp_path: Path
) -> None:
    home = environment()
    run(home / "bin" / "python", "-m", "pip", "install", *OFFLINE, wheel)
    (tmp_path / "bin").mkdir()
    link = tmp_path / "bin" / "quipu"
    link.symlink_to(home / "bin" / "quipu")
    version = wheel.name.split("-")[1]
    assert version in run(link, "--version")


def test_an_installation_without_compilers_names_what_is_missing(
    wheel: Path, environment: Callable[[], Path], tmp_path: Path
) -> None:
    home = environment()
    run(home / "bin" / "python", "-m", "pip", "install", *OFFLINE, wheel)
    doctor = subprocess.run(
        [home / "bin" / "quipu", "doctor", "--json"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert doctor.returncode == 1, doctor.stderr
    rows = {row["name"]: row for row in json.loads(doctor.stdout)["checks"]}
    for part in ("QuipuPass-19.so", "quipu-cc"):
        assert rows[part]["state"] == "missing"
        assert "apt-get install clang-19 llvm-19-dev" in rows[part]["remedy"]


def test_a_build_without_llvm_leaves_out_the_compiler_side(source: Path, tmp_path: Path) -> None:
    absent = "-DCMAKE_DISABLE_FIND_PACKAGE_LLVM=ON"
    configured = subprocess.run(
        ["cmake", "-G", "Ninja", absent, "-S", source, "-B", tmp_path / "build"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert configured.returncode == 0, configured.stderr
    assert "LLVM 19 not found" in configured.stderr
    assert "llvm-19-dev" in configured.stderr
    targets = (tmp_path / "build" / "build.ninja").read_text(encoding="utf-8")
    assert "quipu_exec.c" in targets
    assert "llvm_pass" not in targets


def test_the_tests_run_without_the_folders_around_the_clone() -> None:
    inside = {Path(path).resolve() for path in sys.path}
    assert not inside & set(ROOT.resolve().parents)


def _no_neighbour(found: dict[str, object], folder: Path) -> None:
    origins: dict[str, str] = found["found"]  # type: ignore[assignment]
    assert "neighbour" not in origins
    assert {"numpy", "quipu"} <= set(origins)
    for name in NEIGHBOURS:
        assert not Path(origins.get(name, "")).is_relative_to(folder / name)
