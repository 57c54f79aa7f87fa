# SPDX-License-Identifier: Apache-2.0
"""Find profiles whose names contain the parameters of their runs, as for Extra-P: mm.x4.y10.r1/profile.cubex.

A name has a prefix, then name and value of each parameter, then the repetition. Folders of Cube profiles may have no
prefix and no dots (x4y10.r1). PIRA writes a word without numbers before the repetition (mm.x4.postfix.r1), which is
ignored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from quipu.modeling.errors import FormatError

_REPETITION = re.compile(r"\.r(\d+)\Z")
_PAIR = re.compile(r"[.,]?([^\d.,=][^\d.,=]*)=?(\d+(?:[.,]\d+)?)")
_WORD_PAIRS = re.compile(r"(?:,?[A-Za-z][A-Za-z_]*\d+(?:[.,]\d+)?)+")  # matches whole names; dates do not match
_POSTFIX = re.compile(r"\.[^\d.,=]+\Z")
_COUNTED = re.compile(r"(.*?)(\d+)\.cubex", re.IGNORECASE)
_HOW = "name the folders like Extra-P, prefix.p4.n100.r1: name and value of each parameter, then the repetition"


@dataclass(frozen=True)
class Profile:
    """One profile. path: a file, or the folder of a database. parameters: of its run. repetition: from 1."""

    path: Path
    parameters: dict[str, float]
    repetition: int


def holds_profiles(folder: Path) -> bool:
    """Return whether a folder contains a Cube profile, or folders with Cube profiles (see `find_profiles`)."""
    return any(not entry.name.startswith(".") for pattern in ("*/*.cubex", "*.cubex") for entry in folder.glob(pattern))


def caliper_files(folder: Path) -> list[Path]:
    """Return the files of Caliper in a folder, or in its direct subfolders."""
    found = sorted(folder.glob("*.cali")) or sorted(folder.glob("*/*.cali"))
    return [path for path in found if not path.name.startswith(".")]


def databases(folder: Path) -> list[Path]:
    """Return the databases (folders) of HPCToolkit in a folder; only the folder itself if it is a database."""
    if _is_database(folder):
        return [folder]
    return sorted(path for path in folder.iterdir() if path.is_dir() and _is_database(path))


def _is_database(folder: Path) -> bool:
    if folder.name.startswith("."):
        return False
    return (folder / "experiment.xml").is_file() or all((folder / name).is_file() for name in ("meta.db", "profile.db"))


def find_profiles(source: Path) -> list[Profile]:
    """Return the Cube profiles of an experiment in the order of `in_order`.

    source: a folder with one folder per run; or one profile; or the folder that contains one profile. The result for
    one profile has no parameters if the name of its folder has none.

    Raises FormatError if there are no profiles, or names have no parameters or different ones.
    """
    if source.is_file():
        return _alone(source.parent, [source])
    found: dict[Path, list[Path]] = {}
    for path in sorted(source.glob("*/*.cubex")):
        if not path.name.startswith("."):
            found.setdefault(path.parent, []).append(path)
    if not found and (own := sorted(path for path in source.glob("*.cubex") if not path.name.startswith("."))):
        return _alone(source, own)
    if not found:
        raise FormatError(source, f"contains no folders with Cube profiles: {_HOW}")
    return in_order([profile for parent, paths in found.items() for profile in _profiles(parent, paths)])


def _alone(folder: Path, paths: list[Path]) -> list[Profile]:
    """Return the profiles of an experiment with one configuration; without parameters if its folder names none."""
    name = _with_prefix_alone(folder.resolve().name)
    try:
        parameters, repetition = parameters_in(name, folder)
    except FormatError:
        parameters, repetition = {}, 1
    return _repetitions(folder, paths, parameters, repetition)


def in_order(profiles: list[Profile]) -> list[Profile]:
    """Return the profiles sorted by parameters and repetition.

    Constant parameters are left out, unless all are constant. Raises FormatError if profiles have different parameters.
    """
    first = profiles[0]
    for profile in profiles[1:]:
        if list(profile.parameters) != list(first.parameters):
            raise FormatError(
                named(profile.path),
                f"has the parameters {', '.join(profile.parameters)}, but {named(first.path).name} has "
                f"{', '.join(first.parameters)}: name the same ones in the same order",
            )
    varied = [name for name in first.parameters if len({profile.parameters[name] for profile in profiles}) > 1]
    kept = varied or list(first.parameters)
    profiles = [replace(one, parameters={name: one.parameters[name] for name in kept}) for one in profiles]
    return sorted(profiles, key=lambda profile: (tuple(profile.parameters.values()), profile.repetition))


def _profiles(folder: Path, paths: list[Path]) -> list[Profile]:
    """Return the profiles of a folder whose name has the parameters."""
    return _repetitions(folder, paths, *parameters_in(_with_prefix_alone(folder.name), folder))


def _repetitions(folder: Path, paths: list[Path], parameters: dict[str, float], repetition: int) -> list[Profile]:
    """Return the profile in a folder, or several repetitions: files whose names differ only in a number at the end.

    If there is a file profile.cubex, it is the only profile. Raises FormatError for several other files.
    """
    chosen = [path for path in paths if path.name == "profile.cubex"] or paths
    if len(chosen) == 1:
        return [Profile(chosen[0], parameters, repetition)]
    counted = [_COUNTED.fullmatch(path.name) for path in chosen]
    if len({match[1] if match else path.name for path, match in zip(chosen, counted, strict=True)}) > 1:
        names = ", ".join(path.name for path in chosen)
        raise FormatError(
            folder,
            f"contains several Cube files ({names}): keep one, name one profile.cubex, or name repetitions with "
            "a number, such as profile1.cubex and profile2.cubex",
        )
    numbers = [int(match[2]) for match in counted if match]
    return [Profile(path, parameters, number) for path, number in zip(chosen, numbers, strict=True)]


def _with_prefix_alone(name: str) -> str:
    """Return the name of a folder in the form for `parameters_in`: without a postfix, with a prefix or a dot."""
    ending = _REPETITION.search(name)
    text, end = (name[: ending.start()], ending[0]) if ending else (name, "")
    if _WORD_PAIRS.fullmatch(text):
        return f".{text}{end}"
    prefix, dot, rest = text.partition(".")
    return f"{prefix}{dot}{_POSTFIX.sub('', rest)}{end}"


def parameters_in(name: str, source: Path) -> tuple[dict[str, float], int]:
    """Return the parameters and the repetition (default 1) in a name. Raises FormatError if it has no parameters.

    source: file or folder for errors.
    """
    ending = _REPETITION.search(name)
    text = name[: ending.start()] if ending else name
    _, dot, text = text.partition(".")
    parameters: dict[str, float] = {}
    place = 0
    while place < len(text) and (pair := _PAIR.match(text, place)):
        if pair[1] in parameters:
            raise FormatError(source, f"names the parameter {pair[1]} twice: {_HOW}")
        parameters[pair[1]] = float(pair[2].replace(",", "."))
        place = pair.end()
    if not dot or not parameters or place < len(text):
        raise FormatError(source, f"its name has no parameters: {_HOW}")
    return parameters, int(ending[1]) if ending else 1


def named(path: Path) -> Path:
    """Return the path whose name has the parameters: the folder of a Cube profile, otherwise the profile itself."""
    return path.parent if path.suffix == ".cubex" else path
