# SPDX-License-Identifier: Apache-2.0
"""The output of commands: views and JSON on stdout, messages on stderr, and files.

A file appears completely or not at all, and replaces only files of the same kind (unless the user gives --force).
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quipu.modeling.errors import ModelingError, UsageError
from quipu.modeling.printable import printable, printable_json

if TYPE_CHECKING:
    from quipu.report.terminal import Layout
    from rich.console import RenderableType

_NAMED = 40
"""Number of characters of a file name that the name of its temporary file repeats. File systems limit names."""


def say(message: str) -> None:
    """Print one message for the user on stderr, as a line that begins with "quipu: "."""
    print(f"quipu: {printable(message)}", file=sys.stderr, flush=True)


def layout() -> Layout:
    """Return the layout (such as the width) for views on stdout."""
    from quipu.report.terminal import console_for, layout_of

    return layout_of(console_for(sys.stdout))


def show(renderables: Iterable[RenderableType]) -> None:
    """Print views on stdout, with an empty line between them."""
    from quipu.report.terminal import console_for, plain_text

    console = console_for(sys.stdout)
    for number, renderable in enumerate(renderables):
        if number:
            print()
        if console.is_terminal:
            console.print(renderable)
        else:
            print(plain_text(renderable, console.width))


def show_json(data: Any) -> None:
    """Print JSON on stdout. If the encoding of stdout is not Unicode, all characters outside of ASCII are escaped."""
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    print(json_text(data, indent=2, ascii_only=not unicode))


@contextmanager
def stdout_for_json(active: bool) -> Iterator[None]:
    """Send stdout (also of started programs) to stderr in this context, so that stdout contains only JSON.

    active: if false, do nothing.
    """
    if not active:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def json_text(data: Any, indent: int | None = None, ascii_only: bool = False) -> str:
    """Return data as JSON text. Raises ModelingError if a number in it is not finite."""
    try:
        text = json.dumps(data, indent=indent, ensure_ascii=ascii_only, allow_nan=False)
    except ValueError as error:
        raise ModelingError("a number is too large for JSON: the measured values span too many orders") from error
    return printable_json(text)


def is_document(text: str, format_name: str) -> bool:
    """Return whether a text is a JSON document of Quipu in this format."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("format") == format_name


def write_own(
    path: Path,
    content: str | bytes,
    is_own: Callable[[str], bool],
    kind: str,
    force: bool | None,
    sources: Iterable[Path | None] = (),
) -> None:
    """Write a file completely or not at all. Overwrite an existing file only if it is of the same kind, or with force.

    For the arguments and errors see `require_own` and `write_whole`.
    """
    require_own(path, is_own, kind, force, sources)
    write_whole(path, content)


def own_file(
    path: Path, is_own: Callable[[str], bool], kind: str, force: bool | None, sources: Iterable[Path | None] = ()
) -> Callable[[str | bytes], None]:
    """Return a function that writes its argument to a file like `write_own`.

    Raises the errors of `require_own` at once, before the command does long work. For the arguments see there.
    """
    kept = tuple(sources)
    require_own(path, is_own, kind, force, kept)
    return lambda content: write_own(path, content, is_own, kind, force, kept)


def require_own(
    path: Path, is_own: Callable[[str], bool], kind: str, force: bool | None, sources: Iterable[Path | None] = ()
) -> None:
    """Raise UsageError if `write_own` would refuse to write to a path. Commands call this before long work.

    - is_own: function that returns whether the text of an existing file is of the kind that the command writes.
    - kind: the kind of file, for the message.
    - force: overwrite also other files; None: the command has no option --force.
    - sources: the files and folders that the command reads. A source is never overwritten, even with force. A file in
      such a folder is overwritten only if it is of the same kind.

    Raises OSError if the folder of the path is not writable.
    """
    read = [source for source in sources if source is not None]
    require_no_source(path, read)
    _require_place(path)
    if not path.is_file():
        return
    within = any(source.is_dir() and path.resolve().is_relative_to(source.resolve()) for source in read)
    if within or not force:
        with _naming(path):
            old = path.read_bytes().decode("utf-8", "replace")
        if within and force and not is_own(old):
            raise UsageError(
                f"{path} is in a folder that this command reads and would be overwritten: give another name"
            )
        if old.strip() and not is_own(old):
            instead = "or remove it first" if force is None else "or --force"
            name = "another name" if force is None else "another name with -o"
            raise UsageError(f"{path} exists and contains no {kind}: give {name}, {instead}")


def require_no_source(path: Path, sources: Iterable[Path | None]) -> None:
    """Raise UsageError if the path is one of the files and folders that a command reads. None in sources is ignored."""
    for source in sources:
        if source is not None and path.exists() and source.exists() and path.samefile(source):
            raise UsageError(f"{path} is an input of this command and would be overwritten: give another name")


def _require_place(path: Path) -> None:
    if path.is_dir():
        raise UsageError(f"{path} is a folder: give the name of a file")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: the folder {path.parent} does not exist: make it first")
    folder = _target(path).parent
    if (path.is_file() or not path.exists()) and not os.access(folder, os.W_OK | os.X_OK):
        number = errno.EROFS if os.statvfs(folder).f_flag & os.ST_RDONLY else errno.EACCES
        raise OSError(number, os.strerror(number), str(path))


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file completely or not at all; its folder must exist.

    Raises UsageError if the path is a folder or its folder does not exist, and OSError with the path if it cannot be
    written.
    """
    write_together({path: content})


def write_together(contents: Mapping[Path, str | bytes]) -> None:
    """Write all files completely; if one cannot be written, write none. For the errors see `write_whole`.

    The content is first written to temporary files, which are then renamed.
    """
    for path in contents:
        _require_place(path)
    ready: list[tuple[Path, Path, Path]] = []
    try:
        for path, content in contents.items():
            data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
            with _naming(path):
                if path.exists() and not path.is_file():  # write directly to a device or a pipe, such as /dev/stdout
                    path.write_bytes(data)
                else:
                    target = _target(path)
                    ready.append((path, target, _temporary_file(target, data)))
        for path, target, temporary in ready:
            with _naming(path):
                temporary.replace(target)
    except BaseException:
        for *_, temporary in ready:
            temporary.unlink(missing_ok=True)
        raise


def _target(path: Path) -> Path:
    """Return the path with all symbolic links resolved.

    Raises OSError for a circle of links and for a name that is too long.
    """
    with suppress(FileNotFoundError):  # the file does not exist yet
        path.stat()
    return path.resolve()


def _temporary_file(target: Path, data: bytes) -> Path:
    """Write a temporary file next to `target`, with the permissions of `target`, and return its path."""
    import tempfile  # imported here to reduce the start time of commands

    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:_NAMED]}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(_mode(target))
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Replace the name of the temporary file in system errors of this context by `path`."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _mode(path: Path) -> int:
    """Return the permissions of an existing file, or the default permissions of a new file."""
    try:
        return path.stat().st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
