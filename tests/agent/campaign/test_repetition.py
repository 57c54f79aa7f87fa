# SPDX-License-Identifier: Apache-2.0
"""Launching runs: archives, failures, signals."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from quipu.agent.archive.metadata import RunMetadata
from quipu.agent.archive.read import read_archive
from quipu.agent.campaign.repetition import (
    LaunchOptions,
    RunFailed,
    RunInterrupted,
    agent_command,
    run,
)
from quipu.agent.launch.launchers import LaunchPlan, LaunchRequest, plan_launch
from quipu.agent.launch.process import Ending, run_process
from quipu.agent.launch.raw_folder import wait_for_nodes, write_launch
from quipu.agent.merge.run import merge_run
from quipu.modeling.errors import EnvironmentProblem, MeasurementError, UsageError

PLAIN = LaunchOptions(mpi=False, node_agent=False, say=lambda text: None)


def test_a_run_becomes_an_archive(installed: Path, capfd: pytest.CaptureFixture[str]) -> None:
    archive = run(["mpirun", "-n", "2", "echo", "result"], {"p": 2}, None, "runs", PLAIN)
    assert archive.path == installed / "runs" / "p=2.r1"
    assert read_archive(archive.path).metadata == archive.metadata
    assert archive.metadata.complete
    assert archive.metadata.ranks == 2
    assert archive.metadata.launcher["family"] == "openmpi"
    assert [path.name for path in (installed / "runs").iterdir()] == ["p=2.r1"]
    assert capfd.readouterr().out == "result\nresult\n"


def test_repetitions_are_numbered_on(installed: Path) -> None:
    names = [run(["true"], {}, None, "runs", PLAIN).path.name for _ in range(3)]
    assert names == ["run.r1", "run.r2", "run.r3"]


def test_added_settings_are_told_and_kept(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        monkeypatch.delenv(name, raising=False)
    told: list[str] = []
    options = LaunchOptions(mpi=False, node_agent=False, say=told.append, environment={"A": "1"})
    archive = run(["mpirun", "-n", "1", "true"], {}, None, "runs", options)
    assert told[0].startswith("added OMPI_ALLOW_RUN_AS_ROOT=1")
    assert archive.metadata.environment_added["OMPI_ALLOW_RUN_AS_ROOT"] == "1"
    assert archive.metadata.environment_added["A"] == "1"


def test_the_program_sees_the_switches(installed: Path, capfd: pytest.CaptureFixture[str]) -> None:
    options = LaunchOptions(clock="none", filter_file=Path("f"), mpi_preload=Path("lib.so"), say=lambda text: None)
    run(["mpirun", "-n", "1", "env"], {}, None, "runs", options)
    seen = dict(line.split("=", 1) for line in capfd.readouterr().out.splitlines() if line.startswith("QUIPU_"))
    assert seen["QUIPU_CLOCK"] == "none"
    assert seen["QUIPU_FILTER"] == str(installed / "f")
    assert seen["QUIPU_PRELOAD"] == str(installed / "lib.so")
    assert seen["QUIPU_NODE_AGENT"].endswith(f"/start_node.py {seen['QUIPU_DIR']}")


@pytest.mark.parametrize(
    ("option", "inherited", "seen"), [(None, None, "local"), (None, "all", "all"), ("off", "all", "off")]
)
def test_waits_and_python_functions_are_switched_on(
    installed: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    option: str | None,
    inherited: str | None,
    seen: str,
) -> None:
    if inherited:
        monkeypatch.setenv("QUIPU_MPI_WAIT", inherited)
    options = LaunchOptions(mpi_preload=Path("lib.so"), mpi_wait=option, python=True, say=lambda text: None)
    run(["mpirun", "-n", "1", "env"], {}, None, "runs", options)
    variables = capfd.readouterr().out.splitlines()
    assert f"QUIPU_MPI_WAIT={seen}" in variables
    assert "QUIPU_PYTHON=1" in variables


def test_an_unknown_clock_or_way_to_tell_waits_is_an_error(installed: Path) -> None:
    with pytest.raises(UsageError, match="--mpi-wait 'often': choose one of off, local, sample, all"):
        run(["true"], {}, None, "runs", LaunchOptions(mpi_wait="often"))
    for variable, known in (("QUIPU_MPI_WAIT", "off, local, sample, all"), ("QUIPU_CLOCK", "tsc, monotonic, none")):
        with pytest.raises(UsageError, match=f"{variable}=often: choose one of {known}"):
            run(["true"], {}, None, "runs", LaunchOptions(environment={variable: "often"}))


def test_words_of_the_agent_command_are_quoted_for_the_shim() -> None:
    assert agent_command(Path("/a b\\c")).endswith(" /a\\ b\\\\c")


@pytest.mark.parametrize(
    ("script", "message", "code"),
    [
        ("exit 3", "sh ended with exit code 3", 3),
        ("kill -SEGV $$", "sh was killed by SIGSEGV", 139),
        ("exit 137", r"exit code 137 \(SIGKILL in a process", 137),
    ],
)
def test_a_failed_program_leaves_a_partial_archive(installed: Path, script: str, message: str, code: int) -> None:
    with pytest.raises(RunFailed, match=message) as failure:
        run(["sh", "-c", script], {"p": 1}, None, "runs", PLAIN)
    assert failure.value.exit_code == code
    assert failure.value.archive is not None
    metadata = read_archive(failure.value.archive.path).metadata
    assert metadata.partial
    assert not metadata.complete


def test_an_interruption_of_the_merge_says_what_is_left(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    said: list[str] = []
    monkeypatch.setattr("quipu.agent.campaign.repetition.merge_run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(["true"], {"p": 1}, None, "runs", replace(PLAIN, say=said.append))
    (raw,) = (installed / "runs").iterdir()
    assert said == [f"the profiles stay in {raw}; merge them with: quipu merge {raw} -o {installed / 'runs'}"]
    assert merge_run(raw, installed / "runs").metadata.complete
    monkeypatch.setattr("quipu.agent.campaign.repetition._launch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(["true"], {"p": 2}, None, "runs", PLAIN)
    assert [path.name for path in (installed / "runs").iterdir()] == ["p=1.r1"]


def test_an_interruption_after_the_merge_names_the_archive(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    said: list[str] = []
    monkeypatch.setattr("quipu.agent.merge.run._remove", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(["true"], {"p": 1}, None, "runs", replace(PLAIN, say=said.append))
    assert said == [f"the run was merged before that: {installed / 'runs' / 'p=1.r1'}"]
    assert [path.name for path in (installed / "runs").iterdir()] == ["p=1.r1"]


@pytest.mark.parametrize("profile", [True, False])
def test_a_disk_that_is_full_at_the_end_says_what_is_left(
    installed: Path, monkeypatch: pytest.MonkeyPatch, profile: bool
) -> None:
    written: list[Path] = []

    def full_later(raw: Path, metadata: RunMetadata) -> None:
        if written:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(raw)
        write_launch(raw, metadata)

    monkeypatch.setattr("quipu.agent.campaign.repetition.write_launch", full_later)
    said = (
        "The raw profiles stay there; free space and merge"
        if profile
        else "runs: No space left .*: nothing was measured"
    )
    options = replace(PLAIN, environment={} if profile else {"STAND_IN_PROFILE": "no"})
    with pytest.raises(MeasurementError, match=said):
        run(["true"], {}, None, "runs", options)
    assert written[0].exists() == profile


def test_a_raw_folder_that_is_removed_during_the_run(installed: Path) -> None:
    with pytest.raises(
        MeasurementError, match=r"runs: the raw folder with the measurements was removed while the program ran"
    ):
        run(["rm", "-rf", "runs"], {}, None, "runs", PLAIN)


def test_a_crash_says_what_it_may_be_of(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def with_advice(request: LaunchRequest) -> LaunchPlan:
        return replace(plan_launch(request), if_it_crashes="give it more stack")

    monkeypatch.setattr("quipu.agent.campaign.repetition.plan_launch", with_advice)
    with pytest.raises(RunFailed, match="SIGSEGV in a process that it ran\\); give it more stack; the measurements"):
        run(["sh", "-c", "exit 139"], {}, None, "runs", PLAIN)
    with pytest.raises(RunFailed, match="sh ended with exit code 3; the measurements"):
        run(["sh", "-c", "exit 3"], {}, None, "runs", PLAIN)


def test_time_limit(installed: Path) -> None:
    for limit in (0.5, 5, 60):  # the profile is there as soon as the stand-in of the program has begun
        options = LaunchOptions(mpi=False, node_agent=False, timeout=limit)
        with pytest.raises(RunFailed, match="stopped at its time limit") as failure:
            run([sys.executable, "-c", "import signal; signal.pause()"], {}, None, "runs", options)
        if failure.value.archive is not None:
            return
    raise AssertionError("no archive of what was measured")


def test_our_signals_go_on_to_the_program(installed: Path) -> None:
    script = f"kill -TERM {os.getpid()}; while :; do read -r x < /proc/self/stat; done"
    with pytest.raises(RunInterrupted, match="stopped by SIGTERM") as failure:
        run(["sh", "-c", script], {}, None, "runs", PLAIN)
    assert failure.value.archive is not None
    assert failure.value.exit_code == 143
    assert failure.value.archive.metadata.partial
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_program_that_ends_well_after_a_signal_of_ours_is_partial_still(installed: Path) -> None:
    script = f"trap 'exit 0' INT; kill -INT {os.getpid()}; while :; do read -r x < /proc/self/stat; done"
    ending = run_process(["sh", "-c", script], os.environ)
    assert (ending.exit_code, ending.stopped_by) == (0, signal.SIGINT)


def test_nothing_is_started_if_a_program_is_missing(installed: Path) -> None:
    with pytest.raises(MeasurementError, match=r"\./app: the program does not exist"):
        run(["mpirun", "-n", "2", "./app"], {}, None, "runs", PLAIN)
    assert not (installed / "runs").exists()


def test_no_profile_says_why_and_keeps_the_raw_folder(installed: Path) -> None:
    options = LaunchOptions(mpi=False, node_agent=False, environment={"STAND_IN_PROFILE": "no"})
    with pytest.raises(MeasurementError, match="Build it with the compiler wrappers") as error:
        run(["mpirun", "-n", "2", "true"], {}, None, "runs", options)
    raw = next((installed / "runs").iterdir())
    assert str(raw) in str(error.value)
    assert (raw / "launch.json").exists()
    with pytest.raises(MeasurementError, match="Add --python"):
        run([sys.executable, "-c", ""], {}, None, "others", options)


def test_what_leaves_no_profile_is_not_counted_in_further_runs(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quipu.agent.counters.cachegrind.Cachegrind.unavailable", lambda self, names: "")
    said: list[str] = []
    options = replace(PLAIN, counters="reuse", say=said.append, environment={"STAND_IN_PROFILE": "no"})
    with pytest.raises(MeasurementError, match="wrote no profile"):
        run(["true"], {}, None, "runs", options)
    assert not any("12 times more" in line for line in said)


@pytest.mark.parametrize("counted", [0, 7])
def test_a_run_for_counters_that_fails_gives_none(
    installed: Path, monkeypatch: pytest.MonkeyPatch, counted: int
) -> None:
    """Incomplete output of valgrind is not used as counts, and the times of the run stay."""
    monkeypatch.setattr("quipu.agent.counters.cachegrind.Cachegrind.unavailable", lambda self, names: "")
    head = "events: Ir Dr Dw D1mr D1mw DLmr DLmw\\nfn=main\\n1 5 1 1 0 0 0 0\\n"
    valgrind = installed / "bin" / "valgrind"
    valgrind.write_text(f"""#!/bin/sh
for word; do case $word in --callgrind-out-file=*) printf '{head}' >"${{word#*=}}" ;; esac; done
exit {counted and 127}
""")
    valgrind.chmod(0o755)
    options = replace(PLAIN, counters="L1")
    if not counted:
        assert "l1_hits" in run(["true"], {}, None, "runs", options).metrics
        return
    with pytest.raises(RunFailed, match=r"no counters of cachegrind.* counted in ended with exit code 127") as failure:
        run(["true"], {}, None, "runs", options)
    assert failure.value.exit_code == 127
    stored = read_archive(installed / "runs" / "run.r1")
    assert stored.metadata.complete and "visits" in stored.metrics and "l1_hits" not in stored.metrics


def test_a_launcher_that_starts_nothing(installed: Path) -> None:
    (installed / "bin" / "mpirun").write_text(
        "#!/bin/sh\n[ $1 = --version ] && echo 'mpirun (Open MPI) 4.1.4' || exit 9\n"
    )
    with pytest.raises(RunFailed, match="exit code 9 before any rank was started"):
        run(["mpirun", "-n", "2", "true"], {}, None, "runs", PLAIN)
    assert list((installed / "runs").iterdir()) == []


def test_a_rank_that_does_not_end_mpi_makes_the_run_partial(installed: Path) -> None:
    options = LaunchOptions(mpi=False, node_agent=False, environment={"STAND_IN_PROFILE": "unfinished"})
    with pytest.raises(
        RunFailed, match="true ended without an error, but parts of the measurement are missing: rank 0 ended before"
    ) as failure:
        run(["true"], {}, None, "runs", options)
    assert failure.value.exit_code == 1
    assert failure.value.archive is not None
    assert failure.value.archive.metadata.exit_code == 0
    assert not failure.value.archive.metadata.complete


def test_a_process_that_was_cut_off_on_purpose_is_complete(installed: Path) -> None:
    """Whoever started it saw how it ended, and the launch ended well."""
    options = LaunchOptions(mpi=False, node_agent=False, environment={"STAND_IN_PROFILE": "running"})
    archive = run(["true"], {}, None, "runs", options)
    assert archive.metadata.complete
    assert "ended by _exit, exec or a signal of the program" in archive.metadata.problems[0]
    with pytest.raises(RunFailed, match="false ended with exit code 1") as failure:
        run(["false"], {}, None, "runs", options)
    assert failure.value.archive is not None
    assert "rank 0 ended before the program could finish, process " in failure.value.archive.metadata.problems[1]


def test_unwritable_archive_can_be_merged_later(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("quipu.agent.archive.write.write_table", full)
        with pytest.raises(MeasurementError, match="quipu merge"):
            run(["echo"], {"p": 1}, None, "runs", PLAIN)
    raw = next((installed / "runs").iterdir())
    archive = merge_run(raw, installed / "runs")
    assert archive.metadata.complete
    assert archive.metadata.command == ("echo",)


@pytest.mark.parametrize("options", [LaunchOptions(clock="sundial"), LaunchOptions(timeout=0.0)])
def test_wrong_options(installed: Path, options: LaunchOptions) -> None:
    with pytest.raises(UsageError):
        run(["true"], {}, None, "runs", options)


def test_missing_native_parts(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIPU_HOME", str(installed / "nowhere"))
    with pytest.raises(EnvironmentProblem, match="quipu-exec is neither in"):
        run(["true"], {}, None, "runs", PLAIN)


def test_experiment_folder_that_is_a_file(installed: Path) -> None:
    (installed / "runs").write_text("")
    with pytest.raises(MeasurementError, match="runs cannot be stored there: it is a file"):
        run(["true"], {}, None, "runs", PLAIN)


def test_waiting_for_nodes_has_an_end(tmp_path: Path) -> None:
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    clock: Callable[[], float] = lambda: now[0]  # noqa: E731
    wait_for_nodes(tmp_path, clock, sleep)
    assert now[0] == 0.0
    (tmp_path / "node-n1.log").write_text("")
    wait_for_nodes(tmp_path, clock, sleep)
    assert now[0] == pytest.approx(2.0, abs=0.1)
    (tmp_path / "node-n1.json").write_text('{"ended": true}')
    wait_for_nodes(tmp_path, clock, sleep)
    assert now[0] == pytest.approx(2.0, abs=0.1)


def test_endings_in_words() -> None:
    assert Ending(0, 1.0).text == ""
    assert Ending(-9, 1.0).text == "was killed by SIGKILL"
    assert Ending(-15, 60.0, timed_out=True).text == "was stopped at its time limit, after 60 s"
