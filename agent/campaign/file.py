# SPDX-License-Identifier: Apache-2.0
"""The campaign file: a TOML file that declares an experiment."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quipu.modeling.documents import is_number, toml_of
from quipu.modeling.errors import FormatError, UsageError
from quipu.modeling.limits import reading_file, whole_number
from quipu.modeling.process_grid import MOST_DIMENSIONS, RULES, ProcessGrid

from ..launch.launchers import launch_command
from .points import Point, read_points
from .target import CountsPlan, read_counts, read_target

if TYPE_CHECKING:
    from .jobs.plan import SchedulerPlan
    from .refine_file import RefinePlan
    from .search import SearchPlan

PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
"""A placeholder for a parameter in a command or in the environment."""
REPETITION = "repetition"
"""The name in the placeholder for the number of the repetition, unless a parameter has this name."""
_TABLES = {"experiment", "parameters", "environment", "search", "grid", "refine", "scheduler", "target", "counts"}
_GRID = {"parameter", "dimensions", "rule"}
_LAUNCHING = {"command", "launcher", "ranks", "platform", "compute", "rates"}
_SWITCHES = {
    "python": "whether functions of a Python program are measured",
    "memory": "whether allocations are counted",
    "files": "whether reading and writing files is counted",
    "offload": "whether kernels on devices and copies to and from them are counted",
}
_SETTINGS = {
    "name",
    "directory",
    "repetitions",
    "build",
    "timeout",
    "points",
    "clock",
    "filter",
    *_SWITCHES,
    *_LAUNCHING,
}


@dataclass(frozen=True)
class Campaign:
    """A declared experiment: the command, the points and the number of repetitions.

    The build and the programs run in the folder of the campaign file.

    - path: the campaign file. directory: the folder for the runs.
    - command: words that may contain {parameter}.
    - points: values of the parameters, in the order of `parameters`. The points are in the order of execution:
      ascending, and the first parameter changes last.
    - build: a line for sh; "" if there is nothing to build.
    - timeout: time limit of a run in seconds; None: no limit.
    - clock: see `LaunchOptions`. environment: variables of the program, whose values may contain {parameter}.
    - launcher: starts the command with `ranks` ranks (digits or "{parameter}") on the SimGrid platform `platform`; None
      if the command contains its launcher.
    - rates: the file with the rates of simulated computation; None: computation takes its time on this machine.
    - search, refine: the tables of these names; None if they are missing.
    - grid: the declared process grid, or None.
    - scheduler: the options with which runs become jobs; None: the runs are made on this machine.
    - python, memory, files, offload: whether to make these additional measurements (see `LaunchOptions`).
    - target: the default point of predictions; empty if the file declares none. counts: options of the count-only runs
      for this target.
    - facts: prefix of the names of the facts of this campaign in fingerprints.
    """

    path: Path
    name: str
    directory: Path
    parameters: tuple[str, ...]
    points: tuple[Point, ...]
    command: tuple[str, ...]
    repetitions: int = 1
    build: str = ""
    timeout: float | None = None
    clock: str | None = None
    filter_file: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    launcher: str | None = None
    ranks: str = ""
    platform: Path | None = None
    rates: Path | None = None
    search: SearchPlan | None = None
    refine: RefinePlan | None = None
    grid: ProcessGrid | None = None
    scheduler: SchedulerPlan | None = None
    python: bool = False
    memory: bool = False
    files: bool = False
    offload: bool = False
    target: Mapping[str, float] = field(default_factory=dict)
    facts: str = ""
    counts: CountsPlan = field(default_factory=CountsPlan)

    @property
    def repetitions_differ(self) -> bool:
        """Return whether the command or the environment contains the number of the repetition."""
        texts = (*self.command, *self.environment.values())
        return REPETITION not in self.parameters and any(REPETITION in PLACEHOLDER.findall(text) for text in texts)

    @property
    def template(self) -> dict[str, str]:
        """Return the facts for fingerprints: command and environment with their placeholders, not values."""
        words = (*((self.launcher, self.ranks, str(self.platform or "")) if self.launcher else ()), *self.command)
        return {
            f"{self.facts}template": " ".join(words),
            f"{self.facts}environment": " ".join(f"{name}={value}" for name, value in sorted(self.environment.items())),
        }

    def values(self, point: Point) -> dict[str, float]:
        """Return the values of a point by the name of the parameter."""
        return dict(zip(self.parameters, point, strict=True))

    def command_at(self, point: Point, repetition: int = 1) -> tuple[str, ...]:
        """Return the words of the command of a repetition (from 1) at a point.

        A word with a placeholder stays one word, whatever value replaces it. Raises FormatError or UsageError if the
        number of ranks is invalid at this point.
        """
        command = tuple(self._filled(word, point, repetition) for word in self.command)
        if self.launcher is None:
            return command
        number = whole_number(ranks := self._filled(self.ranks, point))
        if ranks and number is None:
            raise FormatError(self.path, f"ranks: {ranks[:40]} is not a number of ranks: a whole number from 1")
        return launch_command(self.launcher, command, number, self.platform)

    def environment_at(self, point: Point, repetition: int = 1) -> dict[str, str]:
        """Return the environment variables for the program in a repetition (from 1) at a point."""
        return {name: self._filled(value, point, repetition) for name, value in self.environment.items()}

    def _filled(self, text: str, point: Point, repetition: int = 1) -> str:
        numbers = (format(value, ".15g" if isinstance(value, float) else "") for value in point)
        values = {REPETITION: str(repetition), **dict(zip(self.parameters, numbers, strict=True))}
        return PLACEHOLDER.sub(lambda found: values[found.group(1)], text)


def read_campaign(path: Path | str) -> Campaign:
    """Read a campaign file. Raises FormatError with file, line and key for the first mistake.

    All paths in the file are relative to the folder of the file.

    [experiment]
    name = "heat"
    repetitions = 3                      # 1 if not given
    command = "mpirun -n {p} ./heat {n}"
    directory = "heat-runs"              # folder for the runs; the name if not given
    build = "make heat"                  # sh runs it once, optional
    launcher = "smpi"                    # optional: simulate ranks; the command is then the program and its arguments
    ranks = "{p}"                        # number of simulated ranks
    platform = "cluster.xml"             # the SimGrid platform, optional
    compute = "effort"                   # computation takes effort times rates; "measured": its time on this machine
    rates = "heat.rates"                 # a file of quipu rates
    timeout = 600                        # seconds for each run, optional
    [parameters]                         # all combinations; or points = [[1, 64], [2, 128]] in [experiment]
    p = [1, 2, 4, 8]
    n = [64, 128, 256]
    [environment]                        # for the program, optional; {n} is replaced here, too
    OMP_NUM_THREADS = "1"
    SEED = "{repetition}"                # the number of the repetition, from 1; {repetition} works in the command, too
    [grid]                               # arrangement of ranks if the program does not call MPI_Cart_create; optional
    parameter = "p"
    dimensions = 2
    rule = "balanced"                    # a name of process_grid.RULES
    [search]                             # choose runs for a prediction instead of all points; see read_search
    [refine]                             # how `quipu refine` selects regions; see read_refine
    [scheduler]                          # each run is a job of a batch scheduler; see read_scheduler
    [target]                             # the point to predict; adds count-only runs, see read_target
    [counts]                             # options of the count-only runs; see read_counts

    Values of a parameter may also be {from = 10, to = 100, step = 10} or {from = 1, to = 64, factor = 2}.
    """
    path = Path(path)
    with reading_file(path, special=True) as content:
        return _Declaration(path, content.decode("utf-8", "replace"), toml_of(content, path)).campaign()


class _Declaration:
    """The content of a campaign file. Most methods check and return the value of the key with the method's name."""

    def __init__(self, path: Path, text: str, content: dict[str, Any]) -> None:
        self.path = path
        self.text = text
        self.content = content
        experiment = content.get("experiment", {})
        if not isinstance(experiment, dict):
            raise self.error("experiment", "should be a table: [experiment]")
        self.settings: dict[str, Any] = dict(experiment)
        for key, value in content.items():
            if key in _SETTINGS and key in self.settings:
                raise self.error(key, "is given twice: at the top and in [experiment]")
            if key in _SETTINGS:
                self.settings[key] = value
            elif key not in _TABLES:
                raise self.error(key, f"is unknown; a campaign file has the tables {_listed(_TABLES)}")
        for key in self.settings:
            if key not in _SETTINGS:
                raise self.error(key, f"is unknown; [experiment] has {_listed(_SETTINGS)}")

    def error(self, key: str, message: str) -> FormatError:
        """Return the error for a key, with the line of its first definition if it is found."""
        found = re.search(rf"^[ \t]*+(\[[ \t]*+)?[\"']?{re.escape(key)}[\"']?[ \t]*+(=|\])", self.text, re.MULTILINE)
        line = self.text.count("\n", 0, found.start()) + 1 if found else None
        return FormatError(self.path, f"{key}: {message}", line)

    def campaign(self) -> Campaign:
        """Return the checked campaign."""
        name = self.text_of("name", self.path.stem)
        if not name or name.startswith(".") or "/" in name:
            raise self.error("name", f"{name!r} cannot be the name of an experiment")
        given, explicit = self.content.get("parameters", {}), self.settings.get("points")
        parameters, points = read_points(given, explicit, self.error)
        launcher, platform = self.launching()
        filter_file = self.text_of("filter", "")
        return Campaign(
            path=self.path,
            name=name,
            directory=self.path.parent / self.text_of("directory", name),
            parameters=parameters,
            points=points,
            command=self.command(parameters),
            repetitions=self.repetitions(),
            build=self.build(),
            timeout=self.timeout(),
            clock=self.clock(),
            filter_file=self.path.parent / filter_file if filter_file else None,
            environment=self.environment(parameters),
            launcher=launcher,
            ranks=self.ranks(),
            platform=platform,
            rates=self.rates(),
            grid=self.grid(parameters, points),
            search=self.search(parameters),
            refine=self.refine(parameters),
            scheduler=self.scheduler(parameters),
            python=self.switch("python"),
            memory=self.switch("memory"),
            files=self.switch("files"),
            offload=self.switch("offload"),
            target=self.target(parameters),
            counts=self.counts(parameters),
        )

    def grid(self, parameters: tuple[str, ...], points: Iterable[Point]) -> ProcessGrid | None:
        table = self.content.get("grid")
        if table is None:
            return None
        if not isinstance(table, dict):
            raise self.error("grid", 'should be a table: [grid] with parameter = "p" and dimensions = 2')
        for key in table:
            if key not in _GRID:
                raise self.error(key, f"is unknown; [grid] has {_listed(_GRID)}")
        parameter, dimensions = table.get("parameter"), table.get("dimensions")
        rule = table.get("rule", next(iter(RULES)))
        if parameter not in parameters:
            raise self.error("parameter", f"should be the number of ranks, one of: {_listed(set(parameters))}")
        if not isinstance(dimensions, int) or not 2 <= dimensions <= MOST_DIMENSIONS:
            raise self.error("dimensions", f"should be a whole number from 2 to {MOST_DIMENSIONS}")
        if not isinstance(rule, str) or rule not in RULES:
            raise self.error("rule", f"should be one of: {', '.join(map(repr, RULES))}")
        place = parameters.index(parameter)
        if wrong := [point[place] for point in points if point[place] < 1 or point[place] != int(point[place])]:
            raise self.error("parameter", f"{parameter} = {wrong[0]:g} is not a number of ranks: a whole number from 1")
        return ProcessGrid(parameter, rule, dimensions, "declared")

    def search(self, parameters: tuple[str, ...]) -> SearchPlan | None:
        if "search" not in self.content:
            return None
        from .search import read_search  # imported here because only campaigns with [search] need the modelers

        return read_search(self.content["search"], parameters, self.path, self.target(parameters))

    def refine(self, parameters: tuple[str, ...]) -> RefinePlan | None:
        if "refine" not in self.content:
            return None
        from .refine_file import read_refine  # imported here because only campaigns with [refine] need the selections

        return read_refine(self.content["refine"], parameters, self.path)

    def target(self, parameters: tuple[str, ...]) -> dict[str, float]:
        return read_target(self.content["target"], parameters, self.path) if "target" in self.content else {}

    def counts(self, parameters: tuple[str, ...]) -> CountsPlan:
        if "counts" not in self.content:
            return CountsPlan()
        if "target" not in self.content:
            raise self.error("counts", "belongs to [target], which gives the largest number of ranks to count")
        plan = read_counts(self.content["counts"], self.command(parameters), self.path)
        self.used("command", plan.command, parameters)
        return plan

    def scheduler(self, parameters: tuple[str, ...]) -> SchedulerPlan | None:
        if "scheduler" not in self.content:
            return None
        from .jobs.plan import read_scheduler

        return read_scheduler(self.content["scheduler"], parameters, self.timeout(), self.path)

    def launching(self) -> tuple[str | None, Path | None]:
        launcher = self.text_of("launcher", "") or None
        for key in ("ranks", "platform"):
            if key in self.settings and launcher is None:
                raise self.error(key, 'belongs to launcher = "smpi"; for other launchers, write it in the command')
        platform = self.text_of("platform", "")
        place = Path(platform) if platform else None
        try:
            launch_command(launcher or "smpi", self.words("command") if launcher else ["program"], 1, place)
        except UsageError as error:
            raise self.error("launcher", str(error)) from error
        if launcher is not None and place is None and not self.ranks():
            raise self.error("launcher", 'needs ranks = "{p}" or a platform')
        return launcher, place

    def rates(self) -> Path | None:
        compute, rates = self.text_of("compute", "measured"), self.text_of("rates", "")
        if compute not in ("measured", "effort"):
            raise self.error("compute", 'should be "measured" or "effort"')
        if (compute == "effort") != bool(rates):
            raise self.error("rates" if rates else "compute", 'compute = "effort" and rates = "FILE" go together')
        return self.path.parent / rates if rates else None

    def ranks(self) -> str:
        value = self.settings.get("ranks", "")
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return str(value)
        if value != "" and not (isinstance(value, str) and PLACEHOLDER.fullmatch(value)):
            raise self.error("ranks", 'should be a parameter like "{p}", or a whole number above 0')
        return str(value)

    def text_of(self, key: str, default: str) -> str:
        value = self.settings.get(key, default)
        if not isinstance(value, str) or "\0" in value or value.isspace() or (default and not value):
            raise self.error(key, "should be text, not empty")
        return value

    def repetitions(self) -> int:
        value = self.settings.get("repetitions", 1)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 10_000:
            raise self.error("repetitions", "should be a whole number from 1 to 10000")
        return value

    def timeout(self) -> float | None:
        value = self.settings.get("timeout")
        if value is not None and (not is_number(value) or value <= 0):
            raise self.error("timeout", "should be a number of seconds above 0")
        return None if value is None else float(value)

    def clock(self) -> str | None:
        value = self.settings.get("clock")
        if value not in (None, "tsc", "monotonic", "none"):
            raise self.error("clock", 'should be "tsc", "monotonic" or "none"')
        return None if value is None else str(value)

    def switch(self, key: str) -> bool:
        value = self.settings.get(key, False)
        if not isinstance(value, bool):
            raise self.error(key, f"should be true or false: {_SWITCHES[key]}")
        return value

    def words(self, key: str) -> tuple[str, ...]:
        value = self.settings.get(key)
        if isinstance(value, str):
            try:
                value = shlex.split(value)
            except ValueError as error:
                raise self.error(key, f"cannot be split into words: {error}") from error
        if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
            raise self.error(key, "should be a command: text, or a list of words")
        return tuple(value)

    def build(self) -> str:
        """Return the build line for sh, "" without one. The words of a list are quoted, so that sh keeps them."""
        value = self.settings.get("build", "")
        if isinstance(value, list):
            return shlex.join(self.words("build"))
        if "build" in self.settings and not (isinstance(value, str) and value.strip() and "\0" not in value):
            raise self.error("build", "should be a command: text for sh, or a list of words")
        return str(value)

    def command(self, parameters: tuple[str, ...]) -> tuple[str, ...]:
        if "command" not in self.settings:
            raise self.error("experiment", 'command is missing; write for example: command = "mpirun -n {p} ./app {n}"')
        words = self.words("command")
        if REPETITION in PLACEHOLDER.findall(self.ranks()) and REPETITION not in parameters:
            raise self.error("ranks", "should be a parameter, not the number of the repetition")
        used = self.used("command", (*words, self.ranks(), *self.environment(parameters).values()), parameters)
        for name in (name for name in parameters if name not in used):
            message = f"must contain {{{name}}} (or [environment] must), otherwise the parameter would change nothing"
            raise self.error("command", message)
        return words

    def used(self, key: str, texts: Iterable[str], parameters: tuple[str, ...]) -> set[str]:
        used = {name for text in texts for name in PLACEHOLDER.findall(text)}
        for name in sorted(used - {REPETITION, *parameters}):
            raise self.error(key, f"{{{name}}} is not a parameter here; the parameters are {_listed(set(parameters))}")
        return used

    def environment(self, parameters: tuple[str, ...]) -> dict[str, str]:
        table = self.content.get("environment", {})
        if not isinstance(table, dict):
            raise self.error("environment", "should be a table: [environment]")
        result = {}
        for name, value in table.items():
            if isinstance(value, bool) or not isinstance(value, str | int | float) or "\0" in str(value):
                raise self.error(name, "should be text or a number")
            if not name or "=" in name:
                raise self.error(name, "is not a valid name of an environment variable")
            self.used(name, (str(value),), parameters)
            result[name] = str(value)
        return result


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"
