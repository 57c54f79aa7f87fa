"""`quipu machine`: what this machine can do, measured, for models of kernels and for rates."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import typer
from quipu.modeling.errors import UsageError

from .output import json_text, layout, own_file, say, show, show_json


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
    from quipu.modeling.machine import to_document
    from quipu.report.terminal.machine import machine_tables

    from ..machine.describe import describe
    from ..machine.network import measure

    write = own_file(output, _is_machine, "description of a machine", force)
    if network is not None and not shlex.split(network):
        raise UsageError("--network '': give a launcher and the number of ranks, such as --network 'mpirun -n 4'")
    found = measure(shlex.split(network), mpicc) if network is not None else ()
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


def _is_machine(text: str) -> bool:
    from quipu.modeling.machine import FORMAT

    try:
        content = json.loads(text)
    except ValueError:
        return False
    return isinstance(content, dict) and content.get("format") == FORMAT
