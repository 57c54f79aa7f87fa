# SPDX-License-Identifier: Apache-2.0
"""`quipu completion`: print the script with which a shell completes commands and options."""

from __future__ import annotations

import typer
from quipu.modeling.errors import UsageError

from .options import COMPLETE, names_of

_SHELLS = ("bash", "zsh", "fish")


def command(
    *,
    shell: str = typer.Argument(..., metavar="bash|zsh|fish", autocompletion=names_of(_SHELLS), help="The shell."),
) -> None:
    """Print the script that lets a shell complete commands and options with Tab.

    \b
    Example: quipu completion bash >> ~/.bashrc
             quipu completion zsh > ~/.zfunc/_quipu          # a folder of fpath
             quipu completion fish > ~/.config/fish/completions/quipu.fish
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined] # re-exported without __all__

    if shell not in _SHELLS:
        raise UsageError(f"{shell!r}: choose one of {', '.join(_SHELLS)}")
    print(get_completion_script(prog_name="quipu", complete_var=COMPLETE, shell=shell))
