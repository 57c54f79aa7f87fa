# SPDX-License-Identifier: Apache-2.0
"""The node agent: load, frequency and memory of one node and of its ranks while a program runs.

quipu-exec starts one agent on each node: `python -I -S start_node.py RAW_DIR`. The agent imports only a part of the
standard library, so that it starts fast and disturbs little. It also records the end of each measured process, so that
the time of a killed process is known up to its end. The file alive-<host> contains the time of its latest check.
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

INTERVAL = 0.2
CLOSELY = 5  # the first 5 ticks all sample the ranks; later, every fifth tick samples them and writes the file
GIVE_UP = 30.0  # seconds without any rank
AFTER_STOP = 20.0  # seconds; batch systems kill processes about 30 s after SIGTERM
MOST_SAMPLES = 600  # then every second one is dropped, and the sampling rate is halved


class RankWatch:
    """One rank of this node: its process and its latest sample."""

    def __init__(self, content: dict[str, Any]) -> None:
        """Start from the content of rank-<rank>.json, which quipu-exec wrote."""
        self.record: dict[str, Any] = {name: int(content[name]) for name in ("rank", "pid")}
        # The binding at the start of the rank: samples of short runs may show the binding of another process.
        self.record["bound"] = content.get("affinity")
        self.started = start_of(self.record["pid"])  # empty: it has ended

    def sample(self) -> None:
        """Sample the largest memory, context switches and affinity; detect the end of the rank."""
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
        """Return whether the rank is still running; much faster than a sample."""
        if self.started and not exists(self.record["pid"]):
            self.started = ""
        return bool(self.started)


class NodeWatch:
    """The load of this node."""

    def __init__(self) -> None:
        """Take the first reading of the processors."""
        self._busy, self._all = processor_ticks()

    def sample(self, seconds: float) -> dict[str, float]:
        """Return load average, mean use of the CPUs since the last sample (%), MHz, and used memory (bytes)."""
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
    """Samples until all known ranks of this host have ended."""

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
        """Create the agent. raw: the raw folder of the run. clock, sleep (seconds), root (the folder with `sys`): for
        tests.
        """
        self.raw = os.fspath(raw)
        self.host = host
        self.interval = interval
        self.clock = clock
        self.sleep = sleep
        self.ends = ProcessEnds()
        self.counters = NodeCounters(root)
        self.counted: dict[str, float] = {}
        self.alive: int | None = None  # descriptor of alive-<host>
        self.ranks: dict[int, RankWatch] = {}
        self.job = 0  # the number of the job with these ranks; 0: the command of the run, which may start jobs
        self.command: RankWatch | None = None
        self.samples: list[dict[str, float]] = []
        self.end_at: float | None = None
        self.read: set[str] = set()  # names of files that are already read

    def stop(self, number: int = 0, frame: FrameType | None = None) -> None:
        """End when the ranks end, which usually get the same signal, or after AFTER_STOP seconds (a signal handler)."""
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
        """Watch the rank of one file if it is on this host; each of possibly thousands of files is read once."""
        try:
            with open(os.path.join(self.raw, name), encoding="utf-8") as file:
                content = json.load(file)
            if content["host"] == self.host:
                self.take_up(RankWatch(content), int(content.get("job", 0)))
        except (OSError, ValueError, KeyError, TypeError):
            return  # not (yet) written by quipu-exec; the merge reports it
        self.read.add(name)

    def take_up(self, watch: RankWatch, job: int) -> None:
        """Watch a rank; the ranks of an earlier job have ended."""
        self.ends.watch(watch.record["pid"])
        if job == 0 and self.command is None:
            self.command = watch
        if job > self.job:
            self.job = job
            self.ranks.clear()
        if job == self.job:
            self.ranks.setdefault(watch.record["rank"], watch)

    def any_alive(self) -> bool:
        """Return whether a rank is running, or the command, which may start more ranks."""
        watched = [*self.ranks.values(), *([self.command] if self.job and self.command else [])]
        return any(watch.alive() for watch in watched)

    def run(self) -> None:
        """Sample until the end; the file is written every few samples and at the end."""
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
        """Sleep until the next tick; record ended processes, and the current time in alive-<host>."""
        if self.sleep is not None:
            self.sleep(self.interval)
        self.ends.wait(self.interval if self.sleep is None else 0)
        self.note_alive()

    def note_alive(self) -> None:
        """Write the time to alive-<host>. If the agent is killed, unfinished processes were running until this time."""
        try:
            if self.alive is None:
                path = os.path.join(self.raw, f"alive-{self.host}")
                self.alive = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
            os.pwrite(self.alive, b"%020d\n" % time.monotonic_ns(), 0)
        except OSError:
            return  # a full disk, or the run has been merged

    def content(self, ended: bool) -> dict[str, Any]:
        """Return the JSON object of node-<host>.json."""
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
        """Replace node-<host>.json; do nothing if the raw folder does not exist (the run has been merged)."""
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
    """Run the agent: `RAW_DIR` is the argument, or $QUIPU_DIR."""
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
