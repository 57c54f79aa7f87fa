# SPDX-License-Identifier: Apache-2.0
"""Options of launchers that take values, and the search for the program in a launch command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from quipu.modeling.errors import MeasurementError


def _table(one: str, two: str = "") -> dict[str, int]:
    """Return the number of values of each option. one, two: names of the options with one and two values."""
    return dict.fromkeys(one.split(), 1) | dict.fromkeys(two.split(), 2)


# Options without dashes, because mpirun accepts one or two: mpirun(1) of Open MPI 4.1, prterun(1) of Open MPI 5.
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
# srun(1) of Slurm 22.05 to 24.05: options with a required value. Optional values are always joined by "=".
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
    """One program of a launch, and its options.

    options: name without dashes → its values in order. program: index of the program in the command. begin, end: the
    part of the command of this program, without ':'.
    """

    begin: int
    program: int
    end: int
    options: Mapping[str, list[tuple[str, ...]]]

    def last(self, *names: str) -> str | None:
        """Return the last value given to any of these options."""
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
    """Return the programs that a launch command starts; ':' separates several programs.

    - values: options with values in separate words, and the number of these words.
    - exists: whether a word is a program. Used after an option outside of the table, whose next word is its value or
      the program.
    - files: options that name a file with programs, which cannot be measured.
    - joined_short: "-n4" means "-n 4" (getopt).

    Raises MeasurementError if a program is missing or named in a file.
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
    """Store the option at this index, and return the index after it and its values."""
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
