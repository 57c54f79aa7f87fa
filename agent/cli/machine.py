# SPDX-License-Identifier: Apache-2.0
"""`quipu machine`: measure this machine, for `quipu kernels` and `quipu rates`."""

from __future__ import annotations

import shlex
from pathlib import Path

import typer
from quipu.modeling.errors import UsageError

from .output import is_document, json_text, layout, own_file, say, show, show_json


def command(
    *,
    output: Path = typer.Option(Path("machine.json"), "--output", "-o", metavar="FILE", help="The file to write."),
    network: str = typer.Option(
        None, "--network", metavar="LAUNCH", help="Also measure the network between ranks that this launcher starts."
    ),
    mpicc: str = typer.Option(
        "mpicc", "--mpicc", metavar="COMPILER", help="The compiler that builds the program for measuring the network."
    ),
    force: bool = typer.Option(False, "--force", help="Overwrite a file that does not describe a machine."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Print only errors."),
) -> None:
    """Measure caches, latencies, bandwidth and clock frequencies of this machine, and its network.

    Run it on a machine without other load. It takes about a minute.

    \b
    Example: quipu machine -o here.json
             quipu machine -o cluster.json --network "mpirun -n 4 --map-by node"
    """
    from quipu.modeling.machine import FORMAT, to_document
    from quipu.report.terminal.machine import machine_tables

    from ..machine.describe import describe
    from ..machine.network import measure

    write = own_file(output, lambda old: is_document(old, FORMAT), "description of a machine", force)
    launch = None if network is None else _words(network)
    found = () if launch is None else measure(launch, mpicc)
    machine = describe(found, say=(lambda _: None) if quiet or as_json else say)
    document = to_document(machine)
    write(json_text(document, indent=1) + "\n")
    if as_json:
        show_json(document)
    elif not quiet:
        show(machine_tables(machine, layout()))
        for note in machine.notes:
            say(note)
        say(f"wrote {output}")


def _words(launch: str) -> list[str]:
    """Return the words of a launch command, split as in a shell. Raises UsageError if there are none."""
    example = "give a launcher and the number of ranks, such as --network 'mpirun -n 4'"
    try:
        words = shlex.split(launch)
    except ValueError as error:  # a quote that is not closed
        raise UsageError(f"--network {launch!r}: {str(error).lower()}; {example}") from None
    if not words:
        raise UsageError(f"--network {launch!r}: {example}")
    return words
