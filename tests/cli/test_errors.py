# SPDX-License-Identifier: Apache-2.0
"""Bad input ends with one message that names the problem, an exit code, and no traceback."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from patience import PATIENCE, running_process
from profile_writer import rank_profile
from quipu.agent.archive.run_json import read_json, write_json
from quipu.agent.cli.main import COMMANDS, run_command_line
from quipu.agent.installation import native_file

from tests.strangers.hostile import raw_folder

from .conftest import Quipu


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["show", "nowhere"], 1, "nowhere: the file or folder does not exist"),
        (["show", "file"], 1, "file: has an unknown format. Quipu reads Extra-P text, Extra-P JSON"),
        (["show", "empty"], 1, "empty: contains no run archive"),
        (["show", "{heat}", "--metric", "flops"], 1, "no metric 'flops'; choose one of: blocks"),
        (["show", "{heat}", "--sort", "flops"], 1, "no metric 'flops'"),
        (["show", "{heat}", "--at", "p=3"], 2, "--at: this configuration was not measured"),
        (["show", "{heat}", "--at", "q=3"], 2, "no parameter q in this experiment; it has: p, n"),
        (["show", "{heat}/p=1,n=32.r1", "--at", "p=3"], 2, "--at chooses a configuration"),
        (["show", "{heat}", "--over-ranks", "median"], 2, "--over-ranks 'median'"),
        (["show", "{heat}", "--depth", "-1"], 2, "--depth"),
        (["show"], 2, "DIR"),
        (["shwo"], 2, "shwo"),
        (["show", "{heat}", "--frobnicate"], 2, "--frobnicate"),
        (["run", "--timeout", "1e999", "--", "true"], 2, "'--timeout': '1e999' is not a finite number; write"),
        (["run"], 2, "no program"),
        (["run", "--param", "p=x", "--", "true"], 2, "--param 'p=x'"),
        (["run", "--rep", "0", "--", "true"], 2, "--rep"),
        (["run", "--timeout", "0", "--", "true"], 2, "--timeout"),
        (["run", "--filter", "file", "--", "true"], 1, "file:1: 'text' outside of a block"),
        (["run", "--filter", "none", "--", "true"], 2, "none: cannot read the filter file"),
        (["run", "--compute", "guess", "--", "true"], 2, "--compute 'guess'"),
        (["run", "--compute", "effort", "--", "true"], 2, "--rates FILE"),
        (["run", "--rates", "file", "--", "true"], 2, "--compute effort"),
        (["run", "--compute", "effort", "--rates", "file", "--", "true"], 1, "is not JSON"),
        (["rates", "nowhere"], 1, "nowhere"),
        (["rates", "empty"], 1, "empty: contains no run archive"),
        (["rates", "{heat}"], 1, "heat: has no instructions, so rates cannot be fitted"),
        (["rates", "{heat}", "--machine", "file"], 2, "--machine (the machine of the runs) and --on"),
        (["rates", "{heat}", "--on", "file"], 2, "--machine (the machine of the runs) and --on"),
        (["model", "{heat}", "--path", "zzz*"], 1, "no call path matches --path zzz*: write the whole name"),
        (["model", "{heat}", "--path", "zzz*", "--json"], 1, "no call path matches --path zzz*"),
        # Before anything is read, measured or modelled.
        (["machine", "-o", "none/m.json"], 2, "none/m.json: the folder none does not exist: make it first"),
        (["machine", "-o", "file"], 2, "file exists and contains no description of a machine"),
        (["machine", "-o", "nested"], 2, "nested exists and contains no description of a machine"),
        (["export", "{heat}", "-o", "circle"], 1, "circle: Too many levels of symbolic links (the symbolic link leads"),
        (["show", "circle"], 1, "circle: the file or folder does not exist"),
        (["machine", "-o", "circle"], 1, "circle: Too many levels of symbolic links"),
        (["machine", "-o", "x" * 256], 1, "x: File name too long"),
        (["machine", "--network", "mpirun '-n 4"], 2, '--network "mpirun \'-n 4": no closing quotation; give'),
        (["machine", "--network", " "], 2, "--network ' ': give a launcher"),
        *(
            ([*command, "nowhere", "-o", "none/x"], 2, "none/x: the folder none does not exist")
            for command in (["model"], ["diagnose"], ["report"], ["tensor", "fit"], ["tensor", "explain"])
        ),
        (["merge", "nowhere"], 1, "nowhere"),
        (["campaign", "nowhere.toml"], 1, "nowhere.toml"),
        (["facts", "file"], 1, "file: is not a program"),
        (["facts", sys.executable, "--sort", "size"], 2, "--sort 'size'"),
        (["refine", "nowhere.toml"], 1, "nowhere.toml"),
        (["filter", "{heat}", "--at", "p=2,n=64", "--tool", "tau"], 2, "--tool 'tau'"),
        (["filter", "{heat}", "--at", "p=2,n=64", "--overhead", "0"], 2, "--overhead 0"),
        (["filter", "{heat}", "--at", "p=2,n=64", "--format", "gcc"], 2, "--program"),
        (["filter"], 2, "EXPERIMENT is missing"),
        (["refine", "none.toml", "--compiler", "icc"], 2, "--compiler 'icc': choose one of clang, gcc"),
        (["filter", "--statements", "median"], 2, "--program"),
        (["callgraph", "file"], 1, "file: is not a program"),
        (["callgraph", sys.executable], 1, "contains no call graph"),
        (["callgraph", "file", "--metacg", "--dot"], 2, "--metacg and --dot"),
    ],
)
def test_one_message(
    arguments: list[str], code: int, words: str, *, quipu_here: Quipu, heat: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("text\n", encoding="utf-8")
    (tmp_path / "nested").write_text("[" * 100_000, encoding="utf-8")
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "empty").mkdir()
    answer = quipu_here(*(argument.replace("{heat}", str(heat)) for argument in arguments))
    assert answer.code == code
    assert answer.out == ""
    assert answer.err.startswith("quipu: error: ")
    assert words in answer.err


def test_a_folder_that_takes_no_files_is_told_before_the_work(
    quipu_here: Quipu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = os.access
    monkeypatch.setattr("os.access", lambda place, *how: Path(place) != tmp_path and usual(place, *how))
    answer = quipu_here("machine", "-o", "here.json")
    assert (answer.code, answer.err.startswith("quipu: error: here.json: Permission denied")) == (1, True)


def test_files_whose_names_are_as_long_as_names_can_be(quipu_here: Quipu, heat: Path, tmp_path: Path) -> None:
    name = "x" * 250 + ".json"
    assert quipu_here("export", heat, "--format", "extrap-json", "-o", name).code == 0
    assert (tmp_path / name).stat().st_size > 0


def test_a_folder_whose_name_is_no_text_holds_runs(quipu: Quipu, tmp_path: Path) -> None:
    raw = raw_folder(tmp_path / ".raw-x", [rank_profile(0, 1)])
    folder = tmp_path / os.fsdecode(b"heat-\xff")
    merged = quipu("merge", raw, "-o", folder)
    assert merged.code == 0, merged.err
    shown = quipu("show", folder)
    assert shown.code == 0 and "main" in shown.out


def test_a_damaged_archive_names_its_file(quipu: Quipu, heat: Path, tmp_path: Path) -> None:
    copy = tmp_path / "heat"
    shutil.copytree(heat / "p=1,n=32.r1", copy / "run.r1")
    table = copy / "run.r1" / "statistics.parquet"
    table.write_bytes(table.read_bytes()[:100])
    answer = quipu("show", copy)
    assert answer.code == 1
    assert "statistics.parquet" in answer.err


def test_a_run_that_is_at_work_is_not_merged(quipu_here: Quipu, tmp_path: Path) -> None:
    raw = tmp_path / ".raw-x"
    raw.mkdir()
    rank = {"rank": 3, "ranks": 4, "host": socket.gethostname(), "affinity": [0], "program": "./x"}
    environment = {**os.environ, "QUIPU_DIR": str(raw)}
    with running_process(environment) as process:
        (raw / "rank-3.json").write_text(json.dumps({**rank, "pid": process.pid}), encoding="utf-8")
        answer = quipu_here("merge", raw)
        assert answer.code == 1
        assert f"rank 3 (process {process.pid}) is still running" in answer.err
        forced = quipu_here("merge", raw, "--force")
        assert forced.code == 1
        assert "launch.json: is missing" in forced.err
        process.kill()
    for pid in (process.pid, os.getpid()):  # it ended, and its number is that of another process
        (raw / "rank-3.json").write_text(json.dumps({**rank, "pid": pid}), encoding="utf-8")
        assert "launch.json: is missing" in quipu_here("merge", raw).err


def test_an_experiment_is_no_raw_folder(quipu_here: Quipu, heat: Path, tmp_path: Path) -> None:
    for folder, words in (
        (heat, "has no launch.json, so it is not a raw folder of a run"),
        (tmp_path / "nowhere", "the folder does not exist"),
    ):
        answer = quipu_here("merge", folder)
        assert answer.code == 1 and words in answer.err
    (tmp_path / "x" / ".raw-p=2-1").mkdir(parents=True)
    (tmp_path / "x" / ".raw-p=2-1" / "launch.json").write_text("{}")
    assert "it contains the raw folders x/.raw-p=2-1" in quipu_here("merge", "x").err


def test_help_of_every_command_has_an_example(quipu: Quipu) -> None:
    listed = quipu("--help").out.split("\nMeasure:\n")[1].split("\n")
    commands = [line.split()[0] for line in listed if line.startswith("  ") and not line.startswith("   ")]
    assert commands == list(COMMANDS)
    for command in commands:
        answer = quipu(command, "--help", PYTHONIOENCODING="ascii")
        assert answer.code == 0
        assert f"Example: quipu {command}" in answer.out
        begin = "\n".join(answer.out.splitlines()[1:4])
        assert "Example: " in begin, f"an example comes first in the help of {command}"


def test_no_arguments_show_the_help(quipu: Quipu) -> None:
    assert quipu().out.startswith("Usage: quipu")
    assert quipu("--version").out.startswith("quipu ")


def test_a_reader_that_goes_away_is_no_error(heat: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as gone:
        done = subprocess.run(
            [sys.executable, "-c", "from quipu.agent.cli.main import main; main()", "show", str(heat), "--json"],
            stdout=gone,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=False,
        )
    assert done.returncode == 141
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (
            OSError(28, "No space left on device", "/big/file"),
            1,
            "/big/file: No space left on device (the disk is full",
        ),
        (PermissionError(13, "Permission denied", "x"), 1, "x: Permission denied (you may not read or write there"),
        (OSError("strange"), 1, "strange"),
        (MemoryError(), 1, "out of memory"),
    ],
)
def test_errors_of_the_system(
    error: BaseException, code: int, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: object) -> None:
        raise error

    monkeypatch.setattr("quipu.agent.cli.show.is_run", fail)
    assert run_command_line(["show", "x"]) == code
    assert f"quipu: error: {message}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (signal.SIGTERM, 143, "ended by SIGTERM (a time limit?): complete results are kept, repeat the command"),
        (signal.SIGINT, 130, "interrupted"),
    ],
)
def test_signals_are_one_message(tmp_path: Path, number: int, code: int, said: str) -> None:
    """For example by a batch system at its time limit; a process that waits for a pipe runs when this opens."""
    fifo = tmp_path / "campaign.toml"
    os.mkfifo(fifo)
    start = """
        import signal, sys
        signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells ignore for what is in the background
        from quipu.agent.cli.entry import main
        sys.argv = sys.argv[1:]
        main()
    """
    command = [sys.executable, "-c", textwrap.dedent(start), "quipu", "campaign", str(fifo)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
        fifo.open("w", encoding="utf-8"),
    ):
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert out == ""
    assert err.splitlines() == [f"quipu: error: {said}"]


def test_workers_of_a_library_end_silently() -> None:
    """A library may stop forked processes by SIGTERM, which is not the end of the command."""
    start = """
        import os, signal, sys, time
        from quipu.agent.cli import main
        def forked(arguments):
            child = os.fork()
            if child == 0:
                time.sleep(60)
                os._exit(0)
            os.kill(child, signal.SIGTERM)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        main.run_command_line = forked
        main.main()
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(start)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (256 - signal.SIGTERM, "")


def test_an_interruption_that_a_library_makes_another_error_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As one in C does that is interrupted while it is loaded."""

    def fail(_: object) -> None:
        raise ImportError("initialization failed")

    monkeypatch.setattr("quipu.agent.cli.show.is_run", fail)
    monkeypatch.setattr("quipu.agent.cli.main._received", [signal.SIGINT])
    assert run_command_line(["show", "x"]) == 130
    assert capsys.readouterr().err == "quipu: error: interrupted\n"


def test_an_interruption_while_the_command_line_is_loaded() -> None:
    """Importing it takes longer than many commands."""
    start = """
        import sys
        class Interrupted:
            def find_spec(self, name, *_):
                if name == "typer":
                    raise KeyboardInterrupt
        sys.meta_path.insert(0, Interrupted())
        from quipu.agent.cli.entry import main
        main()
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(start)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize(("number", "said"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "ended by SIGTERM")])
def test_a_signal_while_a_library_in_c_is_loaded(number: int, said: str) -> None:
    """Which takes whatever is raised meanwhile for an error of its own."""
    start = f"""
        import os, signal, sys
        signal.signal(signal.SIGINT, signal.default_int_handler)
        class Interrupted:
            def find_spec(self, name, *_):
                if name == "typer":
                    try:
                        os.kill(os.getpid(), {int(number)})
                    except BaseException:
                        raise ImportError("initialization failed")
        sys.meta_path.insert(0, Interrupted())
        from quipu.agent.cli.entry import main
        main()
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(start)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", f"quipu: error: {said}\n")


def test_a_value_of_any_length_is_one_short_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["show", "x", "--depth", "y" * 70_000]) == 2
    said = capsys.readouterr().err
    assert len(said) < 5000
    assert said.endswith("see: quipu show --help\n")


def test_a_defect_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("quipu.agent.cli.show.is_run", fail)
    with pytest.raises(ZeroDivisionError):
        run_command_line(["show", "x"])


def test_commands_start_without_the_libraries_of_numbers(tmp_path: Path) -> None:
    script = (
        "import sys; from quipu.agent.cli.main import COMMANDS, run_command_line; run_command_line(['run', '--help']);"
        "heavy = {'numpy', 'scipy', 'pyarrow', 'jinja2', 'rich'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("closed", ["<&- >&-", "<&- >&- 2>&-", "2>&-"])
def test_closed_streams_are_no_defect(heat: Path, closed: str) -> None:
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c"]
    done = subprocess.run(
        [*shell, "from quipu.agent.cli.main import main; main()", "show", str(heat)],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_working_directory_that_is_gone(
    heat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = raw_folder(tmp_path / ".raw-x", [rank_profile(0)])
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert run_command_line(["merge", str(raw), "--force"]) == 0
    assert f"{tmp_path}/p=2.r1" in "".join(capsys.readouterr())
    (heat / "rules.toml").write_text('[[expect]]\npath = "main"\nat_most = 1e9\n', encoding="utf-8")
    assert run_command_line(["check", str(heat / "rules.toml"), str(heat), "--sarif", str(tmp_path / "x")]) == 1
    assert "the working directory does not exist any more" in capsys.readouterr().err


def test_programs_whose_names_are_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / os.fsdecode(b"a \xff\n")
    source = tmp_path / "x.c"
    source.write_text("int main(void) { return 0; }", encoding="utf-8")
    subprocess.run([native_file("quipu-cc"), source, "-o", program], check=True)
    assert run_command_line(["callgraph", str(program)]) == 0
    assert f'"{tmp_path}/a ' in capsys.readouterr().out
    write_json(tmp_path / "x.json", {"command": [str(program)]})
    assert read_json(tmp_path / "x.json") == {"command": [str(program)]}
