# SPDX-License-Identifier: Apache-2.0
"""The options of launchers that have values, and the search for the programs in a launch command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from quipu.modeling.errors import MeasurementError


def _table(one: str, two: str = "") -> dict[str, int]:
    """Return the number of values of each option, by name. one, two: names of options with one and with two values."""
    return dict.fromkeys(one.split(), 1) | dict.fromkeys(two.split(), 2)


# The tables contain the options of each launcher that have values in separate words. The names have no dashes, because
# mpirun accepts one dash or two. Source: mpirun(1) of Open MPI 4.1, prterun(1) of Open MPI 5.
OPEN_MPI = _table(
    "n np c H host hostfile machinefile default-hostfile x wdir wd path prefix app am tune N npernode npersocket "
    "ppr map-by rank-by bind-to cpu-set cpu-list cpus-per-proc cpus-per-rank rankfile rf cf cartofile "
    "report-pid report-uri report-events output-filename stdin max-restarts max-vm-size preload-files "
    "ompi-server timeout personality hnp debugger xml-file xterm display output runtime-options dvm-uri",
    "mca gmca prtemca pmixmca",
)
# mpiexec.hydra of MPICH 4.0, and additional options of Intel MPI.
HYDRA = _table(
    "n np f host hosts hostfile machinefile genvlist envlist wdir path configfile ppn perhost grr rr arch "
    "bind-to map-by membind topolib launcher launcher-exec bootstrap bootstrap-exec rmk iface demux "
    "ckpointlib ckpoint-prefix ckpoint-interval ckpoint-num prepend-pattern outfile-pattern errfile-pattern "
    "outfile errfile order-nodes usize localhost hostname s gpus-per-proc timeout",
    "env genv",
)
# srun(1) of Slurm 22.05 to 24.05: options with a required value. Optional values follow "=" in the same word.
SLURM = _table(
    "A B b c C d D e E F G i J L m M n N o p P q r S t T w W x "
    "account acctg-freq bb bbf begin cluster-constraint clusters comment constraint container container-id "
    "core-spec cores-per-socket cpu-bind cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot dependency "
    "distribution chdir epilog error export export-file extra extra-node-info exclude gid gpu-bind gpu-freq "
    "gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags hint het-group input job-name jobid "
    "licenses mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus mpi msg-timeout "
    "network nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node "
    "ntasks-per-socket ntasks-per-tres open-mode output partition power prefer priority profile prolog qos "
    "relative reservation signal slurmd-debug sockets-per-node switches task-epilog task-prolog thread-spec "
    "threads threads-per-core time time-min tmp tres-bind tres-per-task treewidth uid wait wckey",
)
# smpirun of SimGrid 3.32.
SMPIRUN = _table(
    "n np bandwidth latency platform hostfile machinefile replay tmpdir trace-comment trace-comment-file "
    "trace-file wrapper",
)


@dataclass(frozen=True)
class Context:
    """One program of a launch command, and the options of the launcher for it.

    begin, end: the words begin, …, end - 1 of the command are the options, the program and its arguments, without ':'.
    program: index of the program in the command. options: by name without dashes; for each occurrence of the option in
    the command a tuple of its values, which is empty for an option without values.
    """

    begin: int
    program: int
    end: int
    options: Mapping[str, list[tuple[str, ...]]]

    def last(self, *names: str) -> str | None:
        """Return the last value of an option; None if it has none.

        names: the names of the option. If several of them have values, the last name in `names` counts.
        """
        values = [entry[-1] for name in names for entry in self.options.get(name, []) if entry]
        return values[-1] if values else None

    def has(self, *names: str) -> bool:
        """Return whether one of these options was given."""
        return any(name in self.options for name in names)


def contexts(
    command: tuple[str, ...],
    values: Mapping[str, int],
    exists: Callable[[str], bool],
    *,
    files: tuple[str, ...] = (),
    joined_short: bool = False,
) -> list[Context]:
    """Return the programs that a launch command starts. The word ':' separates several programs.

    - values: number of values of each option, for options whose values are separate words.
    - exists: returns whether a word is a program. This decides whether the word after an unknown option is the value of
      the option or the program.
    - files: options that name a file with a list of programs. Quipu cannot measure such programs.
    - joined_short: whether "-n4" means "-n 4", as in getopt(3).

    Raises MeasurementError if the command has no program, or an option in `files`.
    """
    found = []
    begin = 1
    while True:
        options: dict[str, list[tuple[str, ...]]] = {}
        at = begin
        while at < len(command) and command[at].startswith("-") and command[at] not in ("-", "--"):
            at = _take_option(command, at, values, exists, joined_short=joined_short, options=options)
        for name in files:
            if name in options:
                raise MeasurementError(
                    f"{command[0]} --{name}: programs that are named in a file cannot be measured; "
                    "write them in the command, separated by ':'"
                )
        if at < len(command) and command[at] == "--":
            at += 1
        if at >= len(command) or command[at] == ":":
            text = " ".join(command)
            raise MeasurementError(f"no program to start in: {text} (expected: {command[0]} [options] program …)")
        end = command.index(":", at) if ":" in command[at:] else len(command)
        found.append(Context(begin, at, end, options))
        if end == len(command):
            return found
        begin = end + 1


def _take_option(
    command: tuple[str, ...],
    at: int,
    values: Mapping[str, int],
    exists: Callable[[str], bool],
    *,
    joined_short: bool,
    options: dict[str, list[tuple[str, ...]]],
) -> int:
    """Store the option at index `at` of the command in `options`; return the index after the option and its values."""
    word = command[at]
    name = word.lstrip("-")
    if "=" in name:
        name, value = name.split("=", 1)
        options.setdefault(name, []).append((value,))
        return at + 1
    if joined_short and not word.startswith("--") and len(name) > 1:
        if values.get(name[0]):
            options.setdefault(name[0], []).append((name[1:],))
            return at + 1
        for flag in name:
            options.setdefault(flag, []).append(())
        return at + 1
    count = values.get(name)
    if count is None:
        following = command[at + 1] if at + 1 < len(command) else ""
        after = command[at + 2] if at + 2 < len(command) else ""
        is_value = bool(following) and not following.startswith("-") and not exists(following) and exists(after)
        count = 1 if is_value else 0
    options.setdefault(name, []).append(command[at + 1 : at + 1 + count])
    return at + 1 + count
