# SPDX-License-Identifier: Apache-2.0
"""The node agent: load, frequency and memory of one node and of its ranks while a program runs.

quipu-exec starts one agent on each node: `python -I -S start_node.py RAW_DIR`. The agent writes node-<host>.json into
the raw folder. It imports only a part of the standard library, so that it starts fast and disturbs little. It also
records the end of each measured process, so that the time of a killed process is known up to its end. The file
alive-<host> contains the time of the latest check for such ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

from .kernel import fields_of, frequency_mhz, memory_bytes, physical_cores, processor_ticks, start_of
from .node_counters import NodeCounters
from .process_ends import ProcessEnds, exists

TYPE_CHECKING = False  # like typing.TYPE_CHECKING; the import of typing takes long
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

INTERVAL = 0.2  # seconds between two ticks, the steps of the agent
CLOSELY = 5  # each of the first 5 ticks samples the ranks; later, every fifth tick does
GIVE_UP = 30.0  # the agent ends if it has found no rank after this time (seconds)
AFTER_STOP = 20.0  # seconds from SIGTERM to the end of the agent; batch systems kill it about 30 s after SIGTERM
MOST_SAMPLES = 600  # if there are more samples of the node, every second one is dropped and the rate is halved


class RankWatch:
    """One rank of this node: its process and its latest sample."""

    def __init__(self, content: dict[str, Any]) -> None:
        """Start from the content of rank-<rank>.json, which quipu-exec wrote."""
        self.record: dict[str, Any] = {name: int(content[name]) for name in ("rank", "pid")}
        # The CPUs of the rank at its start. In short runs, later samples may show the CPUs of another process.
        self.record["bound"] = content.get("affinity")
        self.started = start_of(self.record["pid"])  # empty after the end of the rank

    def sample(self) -> None:
        """Read peak memory (bytes), context switches and allowed CPUs of the rank; detect its end."""
        if not self.started:
            return
        pid = self.record["pid"]
        status = fields_of(f"/proc/{pid}/status")
        try:
            if start_of(pid) != self.started or status["State"].startswith(("Z", "X")):
                self.started = ""
                return
            self.record["voluntary_switches"] = int(status["voluntary_ctxt_switches"])
            self.record["involuntary_switches"] = int(status["nonvoluntary_ctxt_switches"])
            self.record["affinity"] = sorted(os.sched_getaffinity(pid))
            self.record["max_rss_bytes"] = int(status["VmHWM"].split()[0]) * 1024
        except (OSError, KeyError, ValueError):
            self.started = ""

    def alive(self) -> bool:
        """Return whether the rank is still running. This is much faster than `sample`."""
        if self.started and not exists(self.record["pid"]):
            self.started = ""
        return bool(self.started)


class NodeWatch:
    """Samples the load of this node."""

    def __init__(self) -> None:
        """Read the processor time used so far; the first sample is relative to it."""
        self._busy, self._all = processor_ticks()

    def sample(self, seconds: float) -> dict[str, float]:
        """Return a sample of the node. seconds: time since the start of the agent.

        load: load average of the last minute. cpu_percent: mean use of all processors since the last sample.
        """
        busy, total = processor_ticks()
        passed = total - self._all
        percent = 100.0 * (busy - self._busy) / passed if passed > 0 else 0.0
        self._busy, self._all = busy, total
        return {
            "seconds": round(seconds, 3),
            "load": round(os.getloadavg()[0], 2),
            "cpu_percent": round(min(100.0, max(0.0, percent)), 1),
            "frequency_mhz": round(frequency_mhz(), 1),
            "memory_used_bytes": memory_bytes()[1],
        }


class NodeAgent:
    """Samples the node and its ranks until all known ranks of this host have ended."""

    def __init__(
        self,
        raw: str | os.PathLike[str],
        host: str,
        *,
        interval: float = INTERVAL,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] | None = None,
        root: str = "/",
    ) -> None:
        """Create the agent.

        raw: the raw folder of the run. host: the name of this node. interval: seconds between two ticks. Tests replace
        clock, sleep (both in seconds) and root (the folder with `sys`).
        """
        self.raw = os.fspath(raw)
        self.host = host
        self.interval = interval
        self.clock = clock
        self.sleep = sleep
        self.ends = ProcessEnds()
        self.counters = NodeCounters(root)
        self.counted: dict[str, float] = {}  # the latest counts of `counters`
        self.alive: int | None = None  # descriptor of alive-<host>
        self.ranks: dict[int, RankWatch] = {}  # the ranks of the latest job on this host, by number
        self.job = 0  # number of the launcher that started these ranks (nested.py); 0: the command of the run itself
        self.command: RankWatch | None = None  # the command of the run, which may start further launchers
        self.samples: list[dict[str, float]] = []
        self.end_at: float | None = None  # time of `clock` at which the agent ends; None: when the ranks end
        self.read: set[str] = set()  # names of the files that the agent has read

    def stop(self, number: int = 0, frame: FrameType | None = None) -> None:
        """Handle SIGTERM: end with the ranks, which usually get the same signal, at the latest after AFTER_STOP s."""
        self.end_at = self.clock() + AFTER_STOP

    def find_processes(self) -> None:
        """Find new ranks and measured processes of this host."""
        try:
            names = {entry.name for entry in os.scandir(self.raw)} - self.read
        except OSError:
            return  # the run has been merged
        beginning = f"profile-{self.host}-"
        for name in names:
            if name.startswith("rank-") and name.endswith(".json"):
                self.find_rank(name)
            elif name.startswith(beginning) and name.endswith(".quipu"):
                pid = name.removeprefix(beginning).removesuffix(".quipu").split("-")[0]
                if pid.isdigit():
                    self.ends.watch(int(pid))
                self.read.add(name)

    def find_rank(self, name: str) -> None:
        """Read the file of a rank, and watch the rank if it is on this host.

        Each file is read only once, because a run may have thousands of them.
        """
        try:
            with open(os.path.join(self.raw, name), encoding="utf-8") as file:
                content = json.load(file)
            if content["host"] == self.host:
                self.take_up(RankWatch(content), int(content.get("job", 0)))
        except (OSError, ValueError, KeyError, TypeError):
            return  # quipu-exec has not finished writing the file; the merge reports a damaged file
        self.read.add(name)

    def take_up(self, watch: RankWatch, job: int) -> None:
        """Watch a rank. The first rank of a later job replaces all ranks of earlier jobs, which have ended."""
        self.ends.watch(watch.record["pid"])
        if job == 0 and self.command is None:
            self.command = watch
        if job > self.job:
            self.job = job
            self.ranks.clear()
        if job == self.job:
            self.ranks.setdefault(watch.record["rank"], watch)

    def any_alive(self) -> bool:
        """Return whether a rank is running. The command of the run also counts, because it may start more ranks."""
        watched = [*self.ranks.values(), *([self.command] if self.job and self.command else [])]
        return any(watch.alive() for watch in watched)

    def run(self) -> None:
        """Sample until the ranks end; write node-<host>.json every CLOSELY ticks and at the end."""
        started = self.clock()
        node = NodeWatch()
        tick, stride = 0, 1
        self.note_alive()
        while os.path.isdir(self.raw) and (self.end_at is None or self.clock() < self.end_at):
            thorough = tick < CLOSELY or tick % CLOSELY == 0
            if thorough:
                self.find_processes()
                for watch in self.ranks.values():
                    watch.sample()
            if tick % stride == 0:
                self.samples.append(node.sample(self.clock() - started))
                self.counted = self.counters.take()
            if self.ranks and not self.any_alive():
                break
            if not self.ranks and self.clock() - started > GIVE_UP:
                break
            if tick % CLOSELY == 0:
                self.write(ended=False)
            if len(self.samples) > MOST_SAMPLES:
                del self.samples[1::2]
                stride *= 2
            tick += 1
            self.pause()
        self.counted = self.counters.take()
        self.counters.close()
        self.write(ended=True)
        if self.alive is not None:
            os.close(self.alive)
            self.alive = None

    def pause(self) -> None:
        """Sleep until the next tick; record processes that end, and write the current time to alive-<host>."""
        if self.sleep is not None:
            self.sleep(self.interval)
        self.ends.wait(self.interval if self.sleep is None else 0)
        self.note_alive()

    def note_alive(self) -> None:
        """Write the time (ns of CLOCK_MONOTONIC) to alive-<host>.

        If the agent is killed, processes without a recorded end were running at least until this time.
        """
        try:
            if self.alive is None:
                path = os.path.join(self.raw, f"alive-{self.host}")
                self.alive = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
            os.pwrite(self.alive, b"%020d\n" % time.monotonic_ns(), 0)
        except OSError:
            return  # a full disk, or the run has been merged

    def content(self, ended: bool) -> dict[str, Any]:
        """Return the JSON object of node-<host>.json. ended: whether this is the last version of the file."""
        return {
            "ended": ended,
            "host": self.host,
            "agent_seconds": round(sum(os.times()[:4]), 3),
            "cpus": os.cpu_count(),
            "cores": physical_cores(),
            "memory_bytes": memory_bytes()[0],
            "processes": [{"pid": pid, "ended_ns": self.ends.ended.get(pid)} for pid in sorted(self.ends.known)],
            "ranks": [watch.record for _, watch in sorted(self.ranks.items())],
            "samples": self.samples,
            "counters": self.counted,
        }

    def write(self, ended: bool) -> None:
        """Replace node-<host>.json; do nothing if the raw folder no longer exists, because the run has been merged."""
        path = os.path.join(self.raw, f"node-{self.host}.json")
        temporary = os.path.join(self.raw, f".node-{self.host}.{os.getpid()}")
        try:
            with open(temporary, "w", encoding="utf-8") as file:
                file.write(json.dumps(self.content(ended)))
            os.replace(temporary, path)
        except OSError as error:
            if os.path.exists(temporary):
                os.unlink(temporary)
            if os.path.isdir(self.raw):
                print(f"quipu node agent: {path}: {error.strerror}", file=sys.stderr)


def main(arguments: list[str]) -> int:
    """Run the agent; return the exit code. The raw folder is the first argument, otherwise $QUIPU_DIR."""
    folder = arguments[0] if arguments else os.environ.get("QUIPU_DIR", "")
    if not folder or not os.path.isdir(folder):
        print(f"quipu node agent: {folder or 'no raw folder given'}: is not a folder", file=sys.stderr)
        return 2
    text = os.environ.get("QUIPU_NODE_INTERVAL", str(INTERVAL))
    try:
        interval = min(60.0, max(0.01, float(text)))
    except ValueError:
        print(f"quipu node agent: QUIPU_NODE_INTERVAL={text} is not a number of seconds", file=sys.stderr)
        interval = INTERVAL
    agent = NodeAgent(folder, os.uname().nodename, interval=interval)
    signal.signal(signal.SIGTERM, agent.stop)
    agent.run()
    return 0
