# SPDX-License-Identifier: Apache-2.0
"""The messages of compiler wrappers, runtime and MPI library, by code.

The sources in C and C++ hold the words of these messages. A code stands for one or more of them with the same meaning.
"""

from __future__ import annotations

from quipu.modeling.message import Entry

ENTRIES = (
    Entry(
        "bad-setting",
        "{setting}={value}: it must be {allowed}",
        "A compiler wrapper or the runtime found an option or a variable of the environment with a value that it does "
        "not know. The program was not compiled or did not start; correct the value.",
        "environment.md",
    ),
    Entry(
        "bad-filter",
        "{file}:{line}: {problem} (from {source})",
        "The filter file cannot be read, or a line has no meaning in Score-P's format. The program was not compiled or "
        "did not start, because other functions than you expect would be measured.",
        "selection.md",
    ),
    Entry(
        "bad-rates",
        "{file}:{line}: {problem} (from QUIPU_RATES)",
        "The file with the rates of call paths cannot be read, and the simulation did not start. Write the file again "
        "with the command that made it.",
        "simulation.md",
    ),
    Entry(
        "no-compiler",
        "cannot run {compiler}: {reason}",
        "The wrapper found no compiler that it can use: it is not installed, is of another LLVM, or is the wrapper "
        "itself. quipu doctor lists the compilers that work.",
        "questions.md",
    ),
    Entry(
        "no-fortran-module",
        "no module {module} for flang, 'use {module}' will not work: {reason}",
        "The MPI of this machine was built with another Fortran compiler, and the wrapper could not make its module "
        "for flang. Programs that use mpif.h compile all the same.",
        "howto/fortran.md",
    ),
    Entry(
        "no-fortran-library",
        "the Fortran library of this MPI has no {function}; run the program without the MPI wrappers",
        "The program calls MPI from Fortran, and its MPI library does not offer the function that Quipu passes the "
        "call on to. The program was stopped.",
        "howto/fortran.md",
    ),
    Entry(
        "interface-differs",
        "{program} was built for interface {number} of {version}, but the runtime {library} has interface {other}",
        "The program was compiled with another version of Quipu than the one that measures it. Compile all of its "
        "files again with the wrappers of this version.",
        "questions.md",
    ),
    Entry(
        "other-mpi",
        "{program} uses {mpi}, but libquipu_mpi.so was built for another MPI",
        "The launcher, the program and Quipu's MPI library must belong to the same MPI. Name the mpicc of the "
        "program's MPI in QUIPU_MPICC, and start the program with the launcher of that MPI.",
        "environment.md",
    ),
    Entry(
        "mpi-not-counted",
        "MPI is not counted: {reason}",
        "The library could not be put between the program and MPI. The profile has functions and their effort, but no "
        "messages.",
        "questions.md",
    ),
    Entry(
        "no-probes",
        "MPI refused what the probes of collective operations need",
        "Waiting in collective operations cannot be measured with this MPI. Measure with --mpi-wait local or off.",
        "howto/waiting.md",
    ),
    Entry(
        "profile-not-written",
        "cannot write {file}: {reason}; this process is not measured",
        "The folder of the run is missing, full or not writable on that node. The program goes on, and the run is "
        "marked partial.",
        "design/durability.md",
    ),
    Entry(
        "profile-stopped",
        "{what}: {reason}; later call paths are counted with their callers",
        "The profile could not grow, usually because a disk is full. What was measured is kept, and new call paths "
        "are part of their callers.",
        "design/durability.md",
    ),
    Entry(
        "profile-limit",
        "the profile has reached its limit of {limit} MiB; later call paths are counted with their callers",
        "The program has very many call paths. Raise QUIPU_PROFILE_LIMIT, or leave functions out with a filter.",
        "environment.md",
    ),
    Entry(
        "no-memory",
        "no memory; this process is not measured",
        "The system gave no memory for the profile. Start fewer ranks per node, or simulate fewer ranks.",
        "howto/many-ranks.md",
    ),
    Entry(
        "counter-missing",
        "{counter} cannot be counted: {reason}; there are samples only",
        "The kernel or the machine does not offer this hardware counter to you. quipu doctor says which "
        "ones it offers.",
        "counters.md",
    ),
    Entry(
        "no-node-agent",
        "cannot start the node agent: {reason}",
        "The processes of this node run without the agent, which notes the load of the node. Counts and times are "
        "measured all the same.",
        "architecture.md",
    ),
    Entry(
        "cannot-run",
        "cannot run {program}: {reason}",
        "The launcher started Quipu on this node, but the program is not there or cannot be executed. Check its path "
        "on all nodes.",
        "questions.md",
    ),
)
"""All messages of the native parts."""
