# SPDX-License-Identifier: Apache-2.0
"""`quipu doctor`: list installed and missing components, and the command that installs each missing one."""

from __future__ import annotations

from pathlib import Path

import typer

from .output import layout, say, show, show_json


def command(
    *,
    folder: Path = typer.Option(
        Path(), "--output", "-o", metavar="DIR", help="The folder for experiments: the command checks its disk."
    ),
    prepare: bool = typer.Option(
        False, "--prepare", help="Build what the first run with the default MPI would build, and check nothing."
    ),
    headers: bool = typer.Option(
        False, "--headers", help="Print the folder of quipu/region.h and quipu/region.f90, and check nothing."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """List installed and missing components, with the command that installs or repairs each of them.

    The exit code is 1 if a required component is missing.

    \b
    Example: quipu doctor
             quipu doctor --prepare    # build what the first run would build
             gcc -c -I"$(quipu doctor --headers)" app.c    # a program that marks regions
    """
    if headers:
        from ..installation import native_file

        print(native_file("api"))
        return
    if prepare:
        from ..prepare import prepare_first_run

        say(f"prepared: {prepare_first_run()}")
        return
    from quipu.report.json_views import checks_json
    from quipu.report.terminal import tables
    from quipu.report.views import Check

    from ..doctor import checks

    rows = [
        Check(
            one.name,
            "ok" if one.ok else "warning" if one.optional else "missing",
            one.found,
            one.needed_for,
            one.remedy,
        )
        for one in checks(folder)
    ]
    if as_json:
        show_json(checks_json(rows))
    else:
        show([tables.check_table(rows, layout())])
    if any(row.state == "missing" for row in rows):
        raise typer.Exit(1)
