# SPDX-License-Identifier: Apache-2.0
"""The messages of compiler wrappers, runtime and MPI library, each with a code for `quipu explain`.

The C and C++ sources contain the texts that are printed. Texts with the same meaning have the same code.
"""

from __future__ import annotations

from quipu.modeling.message import Entry

ENTRIES = (
    Entry(
        "bad-setting",
        "{setting}={value}: it must be {allowed}",
        "An option of a compiler wrapper, or an environment variable of the wrapper or the runtime, has an invalid "
        "value. The program was not compiled or did not start. Correct the value.",
        "environment.md",
    ),
    Entry(
        "bad-filter",
        "{file}:{line}: {problem} (from {source})",
        "The filter file cannot be read, or a line is not valid in Score-P's format. The program was not compiled or "
        "did not start, because a wrong set of functions would be measured.",
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
        "The wrapper found no compiler that it can use. Possible reasons: the compiler is not installed, belongs to "
        "another version of LLVM, or is the wrapper itself. quipu doctor lists the compilers that work.",
        "questions.md",
    ),
    Entry(
        "no-fortran-module",
        "no module {module} for flang, 'use {module}' will not work: {reason}",
        "The MPI of this machine was built with another Fortran compiler, and the wrapper could not make its module "
        "for flang. Programs that use mpif.h instead of the module still compile.",
        "howto/fortran.md",
    ),
    Entry(
        "no-fortran-library",
        "the Fortran library of this MPI has no {function}; run the program without the MPI wrappers",
        "The program calls MPI from Fortran, and Quipu passes each call on to a function of the MPI library. This "
        "library does not have the function, and the program was stopped.",
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
        "Quipu's MPI library could not intercept the MPI calls of the program. The profile contains functions and "
        "their effort, but no messages.",
        "questions.md",
    ),
    Entry(
        "no-probes",
        "MPI returned an error for an operation that the probes of collective operations need",
        "Waiting in collective operations cannot be measured with this MPI. Measure with --mpi-wait local or off.",
        "howto/waiting.md",
    ),
    Entry(
        "profile-not-written",
        "cannot write {file}: {reason}; this process is not measured",
        "The folder of the run is missing, full or not writable on that node. The program continues, and the run is "
        "marked partial.",
        "design/durability.md",
    ),
    Entry(
        "profile-stopped",
        "{what}: {reason}; later call paths are counted with their callers",
        "The profile could not grow, usually because a disk is full. All measurements until then are kept. The effort "
        "and time of later call paths are added to their callers.",
        "design/durability.md",
    ),
    Entry(
        "profile-limit",
        "the profile has reached its limit of {limit} MiB; later call paths are counted with their callers",
        "The program has very many call paths. Raise QUIPU_PROFILE_LIMIT, or exclude functions with a filter.",
        "environment.md",
    ),
    Entry(
        "no-memory",
        "no memory; this process is not measured",
        "The operating system refused memory for the profile. Start fewer ranks per node, or simulate fewer ranks.",
        "howto/many-ranks.md",
    ),
    Entry(
        "counter-missing",
        "{counter} cannot be counted: {reason}; the profile only contains samples",
        "The machine does not have this hardware counter, or the kernel does not permit you to use it. quipu doctor "
        "lists the available counters.",
        "counters.md",
    ),
    Entry(
        "no-node-agent",
        "cannot start the node agent: {reason}",
        "The node agent records the load of the node. Without it, counts and times are measured, but a loaded node is "
        "not detected.",
        "architecture.md",
    ),
    Entry(
        "cannot-run",
        "cannot run {program}: {reason}",
        "The launcher started Quipu on this node, but the program does not exist there or cannot be executed. Check "
        "the path of the program on all nodes.",
        "questions.md",
    ),
)
"""All messages of the native parts."""
