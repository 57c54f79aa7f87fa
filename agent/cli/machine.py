# SPDX-License-Identifier: Apache-2.0
"""`quipu machine`: what this machine can do, measured, for models of kernels and for rates."""

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
        None, "--network", metavar="LAUNCH", help="Measure the network, too, between ranks started by this launcher."
    ),
    mpicc: str = typer.Option("mpicc", "--mpicc", metavar="COMPILER", help="Builds what measures the network."),
    force: bool = typer.Option(False, "--force", help="Write over a file that describes no machine."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Print nothing but errors."),
) -> None:
    """Measure caches, latencies, bandwidth and clocks of this machine, and its network.

    Run it on a machine that does nothing else. It takes about a minute.

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
    """Return the words of a launcher, as a shell would split them; UsageError if there are none."""
    example = "give a launcher and the number of ranks, such as --network 'mpirun -n 4'"
    try:
        words = shlex.split(launch)
    except ValueError as error:  # a quote that is not closed
        raise UsageError(f"--network {launch!r}: {str(error).lower()}; {example}") from None
    if not words:
        raise UsageError(f"--network {launch!r}: {example}")
    return words
