# SPDX-License-Identifier: Apache-2.0
"""Find the program in launch commands, and add options."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from pathlib import Path

import pytest
from quipu.agent.launch.launchers import LaunchPlan, LaunchRequest, launch_command, plan_launch
from quipu.modeling.errors import FormatError, MeasurementError, UsageError

OPEN_MPI_4 = "mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n"
OPEN_MPI_5 = "mpirun (Open MPI) 5.0.3\n"
PRRTE = "prterun (PRRTE) 3.0.8\n"
MPICH = "HYDRA build details:\n    Version:                                 4.0.2\n    Release Date: …\n"
INTEL = "Intel(R) MPI Library for Linux* OS, Version 2021.12 Build 20240213 (id: 4f55822)\n"
SLURM = "slurm 23.11.4\n"
SIMGRID = "SimGrid version 3.32\n"
SHIM = "/opt/quipu/bin/quipu-exec"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with programs app and other, and a folder of launchers; stacks are as SimGrid makes them."""
    limit_stack(monkeypatch, 8192)
    launchers = [f"bin/{name}" for name in ("mpirun", "mpiexec", "prterun", "srun", "smpirun")]
    for name in ("app", "other", *launchers, "work/inner", "bin/tool"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    (tmp_path / "data.txt").write_text("no program")
    return tmp_path


def limit_stack(monkeypatch: pytest.MonkeyPatch, kib: int | None) -> None:
    """Let `ulimit -s` be this, None: unlimited."""
    limit = resource.RLIM_INFINITY if kib is None else 1024 * kib
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, resource.RLIM_INFINITY))


def plan(
    folder: Path,
    command: str,
    version: str = OPEN_MPI_4,
    *,
    environment: Mapping[str, str] | None = None,
    superuser: bool = False,
) -> LaunchPlan:
    request = LaunchRequest(
        command=tuple(command.split()),
        shim=Path(SHIM),
        environment={"PATH": str(folder / "bin"), **(environment or {})},
        variables={"QUIPU_DIR": "/raw"},
        cores=4,
        folder=folder,
        superuser=superuser,
    )
    return plan_launch(request, lambda path, environment: version)


def words(folder: Path, command: str, version: str = OPEN_MPI_4) -> str:
    """Return the planned command without the launcher."""
    return " ".join(plan(folder, command, version).argv[1:])


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("mpirun ./app", "SHIM ./app"),
        ("mpirun -n 4 ./app -n 5", "-n 4 SHIM ./app -n 5"),
        ("mpirun -np 4 --bind-to core ./app", "-np 4 --bind-to core SHIM ./app"),
        ("mpirun --np 4 tool ./app", "--np 4 SHIM tool ./app"),
        ("mpirun --mca btl self,vader -x A -x B=1 ./app", "--mca btl self,vader -x A -x B=1 SHIM ./app"),
        ("mpirun -n 1 ./app x : -n 2 ./other : ./app", "-n 1 SHIM ./app x : -n 2 SHIM ./other : SHIM ./app"),
        ("mpirun --tag-output --oversubscribe ./app", "--tag-output --oversubscribe SHIM ./app"),
        ("mpirun --some-new-option value ./app", "--some-new-option value SHIM ./app"),
        ("mpirun --some-new-flag ./app ./other", "--some-new-flag SHIM ./app ./other"),
        ("mpirun --wdir work ./inner", "--wdir work SHIM ./inner"),
        ("mpirun -n 2 -- ./app", "-n 2 SHIM ./app"),
        ("mpirun --map-by=core ./app", "--map-by=core SHIM ./app"),
    ],
)
def test_open_mpi_commands(folder: Path, command: str, expected: str) -> None:
    assert words(folder, command) == expected.replace("SHIM", SHIM)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("setsid mpirun -n 2 ./app", "setsid --wait mpirun -n 2 SHIM ./app"),
        ("nohup mpirun -n 2 ./app", "nohup mpirun -n 2 SHIM ./app"),
        ("timeout -k 5 60 nice -n 3 mpirun ./app mpirun", "timeout -k 5 60 nice -n 3 mpirun SHIM ./app mpirun"),
        ("nice ./app mpirun", "nice SHIM ./app mpirun"),
        ("nohup", "SHIM nohup"),
        ("time -o mpirun.txt ./app", "time -o mpirun.txt SHIM ./app"),
        ("tool mpirun -n 2 ./app", "SHIM tool mpirun -n 2 ./app"),
        ("env A=1 -u B mpirun ./app", "env A=1 -u B env QUIPU_DIR=/raw QUIPU_LAUNCHER=openmpi mpirun SHIM ./app"),
        ("env A=1 ./app", "env A=1 env QUIPU_DIR=/raw QUIPU_LAUNCHER=none SHIM ./app"),
    ],
)
def test_launchers_and_programs_behind_other_words(folder: Path, command: str, expected: str) -> None:
    for name in ("env", "nice", "nohup", "setsid", "time", "timeout"):
        (folder / "bin" / name).symlink_to("/bin/true")
    assert " ".join(plan(folder, command).argv) == expected.replace("SHIM", SHIM)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("mpiexec -n 4 ./app", "-n 4 SHIM ./app"),
        ("mpiexec -genv A 1 -ppn 2 -l ./app", "-genv A 1 -ppn 2 -l SHIM ./app"),
        ("mpiexec -genvnone -n 1 ./app : ./other", "-env QUIPU_DIR /raw -env QUIPU_LAUNCHER mpich -genvnone "
         "-n 1 SHIM ./app : -env QUIPU_DIR /raw -env QUIPU_LAUNCHER mpich SHIM ./other"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("version", [MPICH, INTEL])
def test_hydra_commands(folder: Path, command: str, expected: str, version: str) -> None:
    assert words(folder, command, version) == expected.replace("SHIM", SHIM)


@pytest.mark.parametrize(
    ("command", "expected", "ranks"),
    [
        ("srun -n4 ./app", "-n4 SHIM ./app", 4),
        ("srun -n 4 -c 2 --exclusive ./app", "-n 4 -c 2 --exclusive SHIM ./app", 4),
        ("srun --ntasks=8 -lu ./app -v", "--ntasks=8 -lu SHIM ./app -v", 8),
        ("srun --export=ALL,A=1 ./app", "--export=ALL,A=1 SHIM ./app", None),
    ],
)
def test_slurm_commands(folder: Path, command: str, expected: str, ranks: int | None) -> None:
    planned = plan(folder, command, SLURM)
    assert " ".join(planned.argv[1:]) == expected.replace("SHIM", SHIM)
    assert planned.ranks == ranks


@pytest.mark.parametrize(
    ("command", "expected", "ranks"),
    [
        (
            "smpirun -np 8 ./app -np 3",
            "-np 8 -platform /raw/platform.xml --cfg=smpi/host-speed:10Gf POLLS -wrapper SHIM ./app -np 3",
            8,
        ),
        ("smpirun -np 2 -platform p.xml ./app",
         "-np 2 -platform p.xml --cfg=smpi/host-speed:3Gf POLLS -wrapper SHIM ./app", 2),
        (
            "smpirun -platform p.xml --cfg=smpi/host-speed:1f -map ./app",
            "-platform p.xml --cfg=smpi/host-speed:1f -map POLLS -wrapper SHIM ./app",
            None,
        ),
        ("smpirun -n 2 -hostfile h ./app", "-n 2 -hostfile h POLLS -wrapper SHIM ./app", 2),
        ("smpirun -n 2 -hostfile h -wrapper gdb ./app",
         "-n 2 -hostfile h -wrapper gdb POLLS -wrapper SHIM gdb ./app", 2),
        ("smpirun -n 2 -hostfile h --cfg=smpi/test:1e-4 ./app",
         "-n 2 -hostfile h --cfg=smpi/test:1e-4 --cfg=smpi/iprobe:1e-6 -wrapper SHIM ./app", 2),
    ],
)  # fmt: skip
def test_simulated_commands(folder: Path, command: str, expected: str, ranks: int | None) -> None:
    (folder / "p.xml").write_text('<platform><host id="a" speed="3Gf"/><host id="b" speed="3Gf,1Gf"/></platform>')
    planned = plan(folder, command, SIMGRID)
    polls = "--cfg=smpi/test:1e-6 --cfg=smpi/iprobe:1e-6"
    assert " ".join(planned.argv[1:]) == expected.replace("SHIM", SHIM).replace("POLLS", polls)
    assert (planned.ranks, planned.family, planned.rank_processes) == (ranks, "smpi", False)


def test_a_platform_is_made_if_there_is_none(folder: Path) -> None:
    planned = plan(folder, "smpirun -np 8 ./app", SIMGRID)
    assert 'radical="0-7"' in planned.files[Path("/raw/platform.xml")]
    assert planned.details == {"platform": planned.files[Path("/raw/platform.xml")]}
    assert "8 hosts" in planned.notes[0]


@pytest.mark.parametrize(
    ("limit", "given", "size"), [(8192, "", None), (65536, "", 65536), (None, "", 65536), (None, "16384", 16384)]
)
def test_simulated_ranks_have_the_stack_of_the_shell(
    folder: Path, monkeypatch: pytest.MonkeyPatch, limit: int | None, given: str, size: int | None
) -> None:
    limit_stack(monkeypatch, limit)
    option = f"--cfg=contexts/stack-size:{given} " if given else ""
    planned = plan(folder, f"smpirun -np 8 {option}./app", SIMGRID)
    sizes = [word for word in planned.argv if word.startswith("--cfg=contexts/stack-size:")]
    assert sizes == ([] if size is None else [f"--cfg=contexts/stack-size:{size}"])
    assert planned.if_it_crashes.startswith("the error may be in the program")
    assert f", or a rank needs more stack than {size or 8192} KiB" in planned.if_it_crashes


def test_hosts_of_several_speeds_need_a_decision(folder: Path) -> None:
    (folder / "p.xml").write_text('<platform><host id="a" speed="3Gf"/><host id="b" speed="1Gf"/></platform>')
    assert not any("host-speed" in word for word in plan(folder, "smpirun -platform p.xml ./app", SIMGRID).argv)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("smpirun -np ² ./app", r"how many ranks\? Give -np N, or -platform FILE"),
        ("smpirun ./app", r"how many ranks\? Give -np N, or -platform FILE"),
        ("smpirun -np 2 -replay trace ./app", "a replay runs no program"),
        ("smpirun -platform none.xml ./app", r"none\.xml: the platform file does not exist"),
        ("smpirun -platform folder.xml ./app", r"folder\.xml: the platform file does not exist"),
        ("smpirun -platform cut.xml ./app", r"cut\.xml:2: is not a SimGrid platform: not XML \(unclosed token\)"),
        ("smpirun -np 2 ./missing", r"\./missing: the program does not exist"),
    ],
)
def test_mistakes_in_simulated_commands(folder: Path, command: str, message: str) -> None:
    (folder / "folder.xml").mkdir()
    (folder / "cut.xml").write_text('<platform version="4.1">\n  <host id="a" sp', encoding="utf-8")
    with pytest.raises((MeasurementError, FormatError), match=message):
        plan(folder, command, SIMGRID)


def test_a_program_to_simulate() -> None:
    assert launch_command("smpi", ["./app", "3"], 4, Path("p.xml")) == (
        "smpirun", "-np", "4", "-platform", "p.xml", "--log=xbt_cfg.thres:warning", "./app", "3"
    )  # fmt: skip
    with pytest.raises(UsageError, match=r"-n N is missing: give the number of ranks to simulate"):
        launch_command("smpi", ["./app"], None, None)
    with pytest.raises(UsageError, match="launcher 'ssh' is unknown"):
        launch_command("ssh", ["./app"], 1, None)
    with pytest.raises(UsageError, match="remove mpirun"):
        launch_command("smpi", ["mpirun", "-n", "4", "./app"], 4, None)


def test_no_launcher(folder: Path) -> None:
    planned = plan(folder, "./app 3")
    assert planned.argv == (SHIM, "./app", "3")
    assert (planned.ranks, planned.is_mpi) == (1, False)


@pytest.mark.parametrize(
    ("command", "ranks"), [("mpirun -n 3 ./app", 3), ("mpirun ./app", None), ("mpirun -n 3 ./app : -np 2 ./other", 5)]
)
def test_number_of_ranks(folder: Path, command: str, ranks: int | None) -> None:
    assert plan(folder, command).ranks == ranks


def test_root_under_open_mpi(folder: Path) -> None:
    planned = plan(folder, "mpirun -n 2 ./app", superuser=True)
    assert planned.settings == {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    assert len(planned.notes) == 2
    assert planned.environment == {"QUIPU_DIR": "/raw", "QUIPU_LAUNCHER": "openmpi", **planned.settings}
    assert plan(folder, "mpirun --allow-run-as-root ./app", superuser=True).settings == {}
    assert plan(folder, "mpiexec -n 2 ./app", MPICH, superuser=True).settings == {}


def test_more_ranks_than_cores(folder: Path) -> None:
    planned = plan(folder, "mpirun -n 5 ./app")
    assert planned.settings == {"OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
    assert "5 ranks on 4 cores" in planned.notes[0]
    assert plan(folder, "mpirun -n 4 ./app").settings == {}
    assert plan(folder, "mpiexec -n 5 ./app", MPICH).settings == {}


@pytest.mark.parametrize(("launcher", "version"), [("mpirun", OPEN_MPI_5), ("prterun", PRRTE)])
def test_more_ranks_than_cores_under_prrte(folder: Path, launcher: str, version: str) -> None:
    oversubscribed = {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "OMPI_MCA_mpi_yield_when_idle": "1"}
    assert plan(folder, f"{launcher} -n 5 ./app", version).settings == oversubscribed
    assert plan(folder, f"{launcher} -n 4 ./app", version).settings == {}
    del oversubscribed["PRTE_MCA_rmaps_default_mapping_policy"]
    assert plan(folder, f"{launcher} --map-by :OVERSUBSCRIBE -n 5 ./app", version).settings == oversubscribed
    root = plan(folder, f"{launcher} -n 2 ./app", version, superuser=True).settings
    project = "PRTE" if launcher == "prterun" else "OMPI"
    assert root == {f"{project}_ALLOW_RUN_AS_ROOT": "1", f"{project}_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def test_settings_of_the_user_stay(folder: Path) -> None:
    environment = {"OMPI_MCA_rmaps_base_oversubscribe": "0"}
    planned = plan(folder, "mpirun --mca mpi_yield_when_idle 0 -n 9 ./app", environment=environment)
    assert planned.settings == {}


@pytest.mark.parametrize("option", ["--hostfile data.txt", "-H a,b", "--host a:4"])
def test_several_nodes_get_the_variables_by_x(folder: Path, option: str) -> None:
    planned = plan(folder, f"mpirun {option} -n 8 ./app", superuser=True)
    assert " ".join(planned.argv[1:]).startswith("-x QUIPU_DIR -x QUIPU_LAUNCHER -x OMPI_ALLOW_RUN_AS_ROOT ")
    assert "OMPI_MCA_rmaps_base_oversubscribe" not in planned.settings


@pytest.mark.parametrize(
    ("command", "version", "message"),
    [
        ("mpirun -n 2 ./missing", OPEN_MPI_4, r"\./missing: the program does not exist"),
        ("mpirun -n 2 missing", OPEN_MPI_4, "missing: is not in PATH; write ./missing"),
        ("mpirun -n 2 ./data.txt", OPEN_MPI_4, "not executable; run: chmod"),
        ("mpirun -n 2 ./bin", OPEN_MPI_4, "is a folder"),
        ("mpirun -n 2", OPEN_MPI_4, "no program to start"),
        ("mpirun -n 2 : ./app", OPEN_MPI_4, "no program to start"),
        ("mpirun -n 2 ./app :", OPEN_MPI_4, "no program to start"),
        ("mpirun --app file", OPEN_MPI_4, "named in a file"),
        ("mpiexec -configfile data.txt ./app", MPICH, "named in a file"),
        ("mpirun ./app", "mpirun of another kind", "not a launcher that Quipu supports"),
        ("srun --export=NONE ./app", SLURM, "--export=ALL$"),
        ("./missing", "", "the program does not exist"),
        ("", "", "no command given"),
    ],
)
def test_what_cannot_be_launched(folder: Path, command: str, version: str, message: str) -> None:
    with pytest.raises(MeasurementError, match=message):
        plan(folder, command, version)


@pytest.mark.parametrize(
    ("launcher", "packages"),
    [("mpirun", "libopenmpi-dev openmpi-bin"), ("srun", "slurm-client"), ("smpirun", "libsimgrid-dev")],
)
def test_a_launcher_that_is_not_installed_is_named_with_its_packages(
    folder: Path, launcher: str, packages: str
) -> None:
    (folder / "bin" / launcher).unlink()
    with pytest.raises(MeasurementError, match=f"{launcher} of .* is not installed.*apt-get install {packages}$"):
        plan(folder, f"{launcher} -n 2 ./app")


def test_a_launcher_named_by_a_path_that_is_not_there(folder: Path) -> None:
    with pytest.raises(MeasurementError, match="/none/mpirun: the program does not exist"):
        plan(folder, "/none/mpirun ./app")
