# SPDX-License-Identifier: Apache-2.0
"""The module file in a real modulecmd, completion in real shells, and the examples of prologs for Slurm."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from peers import needs

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = Path(sys.executable).parent
ENVIRONMENT = {**os.environ, "PATH": f"{SCRIPTS}:{os.environ['PATH']}"}


def shell(script: str, program: str = "bash", **environment: str) -> str:
    """Return what a script prints."""
    done = subprocess.run(
        [program, "-c", script], env={**ENVIRONMENT, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs("environment-modules")
def test_module_is_loaded_and_unloaded() -> None:
    prefix = SCRIPTS.parent
    use = (
        f"PATH=/usr/bin:/bin; . /usr/share/modules/init/bash; module use {prefix}/share/modulefiles; module load quipu"
    )
    printed = shell(f"{use}; command -v quipu-mpicc; echo $CMAKE_PREFIX_PATH; module unload quipu; echo $PATH")
    assert printed.split() == [f"{prefix}/bin/quipu-mpicc", str(prefix), "/usr/bin:/bin"]


@needs("environment-modules")
def test_module_says_what_it_is() -> None:
    start = f". /usr/share/modules/init/bash; module use {SCRIPTS.parent}/share/modulefiles"
    assert "quipu doctor" in shell(f"{start}; module help quipu 2>&1")
    assert "how parallel programs scale" in shell(f"{start}; module whatis quipu 2>&1")


def test_module_is_the_same_in_every_locale() -> None:
    """Lmod prints non-ASCII characters byte by byte in the C locale."""
    assert (ROOT / "share" / "modulefiles" / "quipu").read_bytes().isascii()


def test_bash_completes() -> None:
    ask = "source <(quipu completion bash); COMP_WORDS=({}); COMP_CWORD={}; _quipu_completion quipu; {}"
    answer = "echo ${COMPREPLY[@]}"
    assert sorted(shell(ask.format("quipu exp", 1, answer)).split()) == ["explain", "export"]
    assert shell(ask.format("quipu show -m bytes_i", 3, answer)).split() == ["bytes_in_order"]
    assert shell(ask.format("quipu model --metric time,blo", 3, answer)).split() == ["time,blocks"]
    assert shell(ask.format("quipu export -f extrap-", 3, answer)).split() == ["extrap-json", "extrap-jsonl"]
    assert shell(ask.format("quipu explain far", 2, answer)).split() == ["far-beyond"]
    assert shell(ask.format("quipu filter --format ''", 3, answer)).split() == ["scorep", "gcc", "names"]
    assert shell(ask.format("quipu model --selector s", 3, answer)).split() == ["smape"]
    assert shell(ask.format("quipu predict --over-ranks ma", 3, answer)).split() == ["max"]
    assert shell(ask.format("quipu show --ran", 2, answer)).split() == ["--ranks"]


@needs("fish")
def test_fish_completes() -> None:
    ask = 'quipu completion fish | source; complete -C "quipu tensor f"; complete -C "quipu predict --a"'
    assert [line.split()[0] for line in shell(ask, "fish").splitlines()] == ["fit", "--at"]


@needs("zsh")
def test_zsh_completes() -> None:
    load = "autoload -Uz compinit; compinit -D; source <(quipu completion zsh); echo $_comps[quipu]"
    assert shell(load, "zsh").split() == ["_quipu_completion"]
    asked = {"_QUIPU_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "quipu ex"}
    assert '"export"' in shell("quipu", "zsh", **asked)


def test_completion_names_the_shells_that_it_knows() -> None:
    done = subprocess.run([SCRIPTS / "quipu", "completion", "ksh"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "bash, zsh, fish" in done.stderr


@pytest.mark.parametrize(
    ("constraints", "before", "during"), [("hwperf", "3", "1"), ("fat&hwperf", "0", "0"), ("fat", "3", "3")]
)
def test_slurm_prolog_allows_and_epilog_takes_back(tmp_path: Path, constraints: str, before: str, during: str) -> None:
    setting = tmp_path / "perf_event_paranoid"
    setting.write_text(before, encoding="utf-8")
    given = {
        "QUIPU_PERF_SETTING": str(setting),
        "QUIPU_PERF_KEPT": str(tmp_path / "kept"),
        "SLURM_JOB_CONSTRAINTS": constraints,
    }
    shell(str(ROOT / "share" / "slurm" / "prolog.sh"), "sh", **given)
    assert setting.read_text(encoding="utf-8").strip() == during
    shell(str(ROOT / "share" / "slurm" / "epilog.sh"), "sh", **given)
    assert setting.read_text(encoding="utf-8").strip() == before
    assert not (tmp_path / "kept").exists()


def test_slurm_task_prolog_sets_what_the_user_has_not(tmp_path: Path) -> None:
    script, shared = str(ROOT / "share" / "slurm" / "task_prolog.sh"), {"QUIPU_SHARED_CACHE": str(tmp_path / "cache")}
    assert shell(script, "sh", XDG_CACHE_HOME="", **shared) == f"export XDG_CACHE_HOME={tmp_path}/cache\n"
    assert shell(script, "sh", XDG_CACHE_HOME="/mine", **shared) == ""
