# SPDX-License-Identifier: Apache-2.0
"""The command `quipu`: its subcommands, error messages and exit codes.

Exit codes: 0 success; 1 bad input, or a failed measurement; 2 wrong usage; 3 an expectation of `quipu check` does not
hold; 130 interrupted by SIGINT; 141 the reader of the output pipe has ended; 143 ended by SIGTERM. If the program of
`quipu run` fails, its exit code is returned.
"""

from __future__ import annotations

import errno
import importlib
import inspect
import os
import signal
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import typer
from quipu.modeling.errors import QuipuError
from quipu.modeling.printable import printable
from quipu.modeling.progress import shown_by
from typer.core import TyperGroup

from .arguments import make_strict
from .mixed import with_mixed
from .options import COMPLETE, CONTEXT, example_first
from .remaining import Remaining

GROUPS = {
    "Measure": {
        "run": "Run a program under measurement.",
        "campaign": "Run all points of a declared experiment.",
        "merge": "Merge the raw profiles of an interrupted run.",
    },
    "Look": {
        "show": "Show the call tree of a run with its metrics.",
        "efficiency": "Show the efficiency hierarchy (POP), and what loses time.",
        "report": "Write the report, one HTML file.",
        "diff": "Compare two runs or experiments.",
    },
    "Model and predict": {
        "model": "Model how every metric of every call path scales.",
        "predict": "Rank call paths by their predicted value at a point.",
        "diagnose": "Find what limits the program at a larger scale, and why.",
        "kernels": "Break the predicted time down by kernels.",
        "tensor": "Model times that depend on many parameters.",
    },
    "Decide": {
        "suggest": "Suggest the next measurements within a budget.",
        "filter": "Write a Score-P filter that keeps the regions that matter.",
        "refine": "Find what to instrument: build, run, analyze, repeat.",
        "check": "Check that effort grows as expected: for CI.",
    },
    "Machines and simulation": {
        "rates": "Fit the time of an instruction, a flop, a byte.",
        "machine": "Measure caches, latencies, bandwidth and network.",
    },
    "Other tools and programs": {
        "export": "Write an experiment or a call tree for other tools.",
        "facts": "Show blocks, instructions, loops and calls of each function.",
        "callgraph": "Show the call graph of a binary.",
        "generate": "Write an MPI program with known complexity.",
    },
    "Quipu itself": {
        "explain": "Explain a message: its meaning, and what to do.",
        "doctor": "List installed and missing components, and how to install them.",
        "completion": "Print the script of a shell's completion.",
    },
}
"""Group → name of a command (and of its module in this folder) → summary. The groups are in the usual order of use."""

COMMANDS = {name: summary for group in GROUPS.values() for name, summary in group.items()}

READ_EXPERIMENTS = frozenset(
    (
        "callgraph",
        "model",
        "predict",
        "diagnose",
        "kernels",
        "check",
        "diff",
        "suggest",
        "filter",
        "report",
        "efficiency",
        "export",
        "rates",
        "show",
    )
)

# Typer 0.26 and later contain a copy of click, earlier versions use the installed click. The name of the base class is
# the same in both.
_ClickException = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")

# Largest number of characters of a message, because quoted input may be long. The middle is left out: the end of a
# message is the advice.
_LONGEST_MESSAGE = 4000

_HINTS = {
    errno.ENOSPC: "the disk is full: free space, then repeat the command",
    errno.EDQUOT: "your disk quota is used up: free space, then repeat the command",
    errno.EACCES: "you may not read or write there: choose another place or change its permissions",
    errno.EPERM: "you may not do that there: choose another place or change its permissions",
    errno.EROFS: "the file system is read-only: choose another place with -o",
    errno.ENOENT: "check the name, and that the folder exists",
    errno.ENOTDIR: "a part of the path is a file and not a folder",
    errno.ELOOP: "the symbolic link leads back to itself: remove it",
    errno.EISDIR: "that is a folder, not a file",
    errno.EMFILE: "too many open files: raise the limit with ulimit -n",
}

_HELP = """Measure parallel programs, predict how they scale, and see what limits them.

\b
Build:     make CC=quipu-mpicc LD=quipu-mpicc
Run:       quipu run --param p=4 --param n=100 -o heat.runs -- mpirun -n 4 ./heat 100
Look:      quipu show heat.runs
Measure:   quipu campaign heat.toml
Predict:   quipu predict heat.runs --at p=1024,n=1e6

An EXPERIMENT is a folder of runs, a file of Extra-P, or profiles of Score-P, Caliper or HPCToolkit.

Many messages end with a code, such as [far-beyond]: quipu explain far-beyond prints the meaning of the message.
"""


class _Grouped(TyperGroup):
    """The command `quipu` with a help text that lists the commands by group."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the groups, each with its commands in one column."""
        width = max(map(len, COMMANDS))
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), summary) for name, summary in group.items()])


def application(loaded: Collection[str] = COMMANDS.keys()) -> typer.Typer:
    """Return the command line with all commands.

    loaded: the commands to import. The other commands have only a name and a summary, which saves start time.
    """
    app = typer.Typer(
        name="quipu",
        cls=_Grouped,
        help=_HELP,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=CONTEXT,
    )
    app.callback()(_callback)
    for name, summary in COMMANDS.items():
        if name not in loaded:
            app.command(name, short_help=summary)(_unloaded)
            continue
        module = importlib.import_module(f".{name}", __package__)
        if hasattr(module, "application"):
            app.add_typer(module.application(), name=name, short_help=summary)
        else:
            settings = {**CONTEXT, **getattr(module, "CONTEXT", {})}
            command = with_mixed(module.command) if name in READ_EXPERIMENTS else module.command
            text = example_first(inspect.getdoc(module.command) or "")
            app.command(name, help=text, short_help=summary, context_settings=settings)(command)
    return app


def _unloaded() -> None:
    """Do nothing: this function stands for a command that is not imported."""


def _show_version(wanted: bool) -> None:
    if wanted:
        from ..installation import quipu_version

        typer.echo(f"quipu {quipu_version()}")
        raise typer.Exit(0)


def _callback(
    version: bool = typer.Option(
        False, "--version", help="Show the version and exit.", is_eager=True, callback=_show_version
    ),
) -> None:
    """Do nothing: the option --version, which stands before the command, has a separate callback."""


def run_command_line(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. An error is printed as one message on stderr.

    arguments: the words after `quipu`.
    """
    command = typer.main.get_command(application(arguments[:1]))
    make_strict(command)
    try:
        try:
            with command.make_context("quipu", list(arguments) or ["--help"]) as context, shown_by(Remaining()):
                command.invoke(context)
            sys.stdout.flush()
        except BrokenPipeError:
            return _quiet_pipe()
        return 0
    except typer.Exit as ending:
        return int(ending.exit_code)
    except (KeyboardInterrupt, typer.Abort) as error:
        return _stopped(signal.SIGTERM if isinstance(error, _Ended) else signal.SIGINT)
    except QuipuError as error:
        return _print_error(str(error), error.exit_code)
    except OSError as error:
        return _print_error(_system_error(error), 1)
    except MemoryError:
        return _print_error("out of memory: use a larger machine, or fewer call paths or ranks at once", 1)
    except Exception as error:
        if _received:  # a signal arrived during the import of a C library, which raised another error instead
            return _stopped(_received[0])
        if not isinstance(error, _ClickException):
            raise  # a defect of Quipu: a bug report needs the traceback
        return _print_error(_usage_message(error), 2)


def main() -> None:
    """Run the command `quipu`, or answer a completion request of a shell (variable _QUIPU_COMPLETE)."""
    _open_standard_streams()
    for number, usual in _USUAL.items():
        if signal.getsignal(number) is usual:  # otherwise the caller ignores the signal (nohup)
            signal.signal(number, _end)
    os.register_at_fork(before=_hold_signals, after_in_parent=_release_signals, after_in_child=_end_as_usual)
    if COMPLETE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined] # is imported there

        completion_init()
        typer.main.get_command(application()).main(prog_name="quipu", complete_var=COMPLETE)
    sys.exit(run_command_line(sys.argv[1:]))


class _Ended(KeyboardInterrupt):
    """SIGTERM arrived. This is a KeyboardInterrupt, so that incomplete files are removed as after Ctrl-C."""


_received: list[int] = []
"""Numbers of the received signals that end the command."""


_USUAL: dict[signal.Signals, Any] = {signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
"""The handlers that Python sets at its start."""


def _end(number: int, _: object) -> None:
    _received.append(number)
    raise _Ended if number == signal.SIGTERM else KeyboardInterrupt


def _hold_signals() -> None:
    """Block the signals before a fork. Python would lose a signal that the child receives before `_end_as_usual`."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _USUAL)


def _release_signals() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _USUAL)


def _end_as_usual() -> None:
    """Restore the usual handlers in a forked process: libraries end their workers by SIGTERM, without a message."""
    for number, usual in _USUAL.items():
        if signal.getsignal(number) is _end:
            signal.signal(number, usual)
    _release_signals()


def _stopped(number: int) -> int:
    """Print which signal ended the command, and return the exit code of the command."""
    if number == signal.SIGTERM:
        return _print_error("ended by SIGTERM (a time limit?): complete results are kept, repeat the command", 143)
    return _print_error("interrupted", 130)


def _open_standard_streams() -> None:
    """Open /dev/null in place of each standard stream that the caller closed.

    Otherwise the next opened file would get the number of this stream, and programs would print into the file.
    """
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is the number of the stream
            os.set_inheritable(nowhere, True)
            setattr(sys, name, os.fdopen(nowhere, "w" if descriptor else "r", encoding="utf-8"))


def _print_error(message: str, code: int) -> int:
    if len(message) > _LONGEST_MESSAGE:
        half = _LONGEST_MESSAGE // 2
        message = f"{message[:half]} … {message[-half:]}"
    try:
        print(f"quipu: error: {printable(message)}", file=sys.stderr, flush=True)
    except BrokenPipeError:
        return _quiet_pipe()
    return code


def _quiet_pipe() -> int:
    """Return the exit code after the reader of stdout has ended, 141 (128 + SIGPIPE).

    stdout becomes /dev/null, so that output that is still buffered raises no error at exit.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    return 128 + 13


def _system_error(error: OSError) -> str:
    where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    text = _HINTS.get(error.errno or 0, "")
    reason = error.strerror or str(error) or type(error).__name__
    if not where and error.errno == errno.ENOENT and not _has_working_directory():
        return "the working directory does not exist any more: change to another one, then repeat the command"
    return f"{where}{reason}" + (f" ({text})" if text else "")


def _has_working_directory() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True


def _usage_message(error: Exception) -> str:
    message = getattr(error, "format_message", lambda: str(error))()
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "quipu"
    return f"{message.rstrip('.')}; see: {path} --help"
