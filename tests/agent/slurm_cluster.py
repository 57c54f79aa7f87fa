# SPDX-License-Identifier: Apache-2.0
"""Start and stop a Slurm cluster of one node on this machine: munge, controller and node daemon."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil
from patience import PATIENCE, until

_CONFIGURATION = """
ClusterName=quipu
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser=root
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
SlurmctldTimeout=5
SlurmdTimeout=300
MessageTimeout=5
KillWait=2
SchedulerParameters=sched_interval=1,bf_interval=1
JobRequeue=1
MinJobAge=10
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=1000 State=UNKNOWN
PartitionName=work Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Cluster:
    """The daemons, with their files in one folder. Commands with `environment` use this cluster."""

    def __init__(self, folder: Path) -> None:
        """Start all daemons, and wait until the node is idle."""
        self.folder = folder
        self.host = socket.gethostname().split(".")[0]
        for name in ("state", "spool"):
            (folder / name).mkdir()
        key = folder / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        text = _CONFIGURATION.format(host=self.host, folder=folder, controller=_free_port(), node=_free_port())
        self.configuration = folder / "slurm.conf"
        self.configuration.write_text(text)
        self.environment = {**os.environ, "SLURM_CONF": str(self.configuration)}
        files = [f"--{name}={folder}/munge.{kind}" for name, kind in _MUNGE.items()]
        self._run("munged", "--force", *files)
        self.start_controller()
        self._run("slurmd", "-f", str(self.configuration))
        self.wait_for("idle")

    def start_controller(self) -> None:
        """Start the controller with the stored state of the previous one."""
        self._run("slurmctld", "-f", str(self.configuration))

    def kill_controller(self) -> None:
        """End the controller as a crash would, and wait until it is gone."""
        self._end("slurmctld.pid", signal.SIGKILL)

    def restart_controller(self) -> None:
        """Start the controller after some seconds; start it again if it does not answer."""
        start = f"slurmctld -f {self.configuration}; sleep 3; scontrol ping | grep -q UP && break"
        subprocess.Popen(("sh", "-c", f"sleep 3; for attempt in $(seq 20); do {start}; done"), env=self.environment)

    def control(self, *words: str) -> str:
        """Run scontrol."""
        return self._run("scontrol", *words)

    def jobs(self) -> list[str]:
        """Return the numbers of the jobs that are waiting or running."""
        return self._run("squeue", "-h", "-o", "%i").split()

    def cancel(self, job: str) -> None:
        """Cancel a job."""
        self._run("scancel", job)

    def save_jobs(self) -> None:
        """Wait until the controller has written all jobs to disk, some seconds after a change."""
        written = self.folder / "state" / "job_state"
        began = time.time()
        newest = max(self.jobs(), key=int)  # the other jobs may be ending
        self.control("update", f"JobId={newest}", "Comment=saved")  # a change that the controller must write
        until(lambda: written.exists() and written.stat().st_mtime > began, "the controller has written its jobs", 0.1)

    def wait_for(self, state: str) -> None:
        """Wait until the node is in a state."""
        until(lambda: state in self._state(), f"the node is {state}", 0.1)

    def _state(self) -> str:
        """Return the state of the node, "" while the controller does not answer."""
        command = ("sinfo", "-h", "-o", "%T")
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False).stdout

    def stop(self) -> None:
        """End all daemons."""
        for name in ("slurmctld.pid", "slurmd.pid", "munge.pid"):
            self._end(name, signal.SIGTERM)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False, timeout=PATIENCE
        )
        assert done.returncode == 0, f"{command}: {done.stdout} {done.stderr}"
        return done.stdout

    def _end(self, name: str, number: int) -> None:
        path = self.folder / name
        if not path.exists():
            return
        pid = int(path.read_text())
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        until(lambda: not psutil.pid_exists(pid), f"{name}: process {pid} has ended")
        path.unlink(missing_ok=True)


_MUNGE = {"key-file": "key", "socket": "socket", "log-file": "log", "pid-file": "pid", "seed-file": "seed"}


def _free_port() -> int:
    """Return a free port below the range of ports that the system assigns automatically.

    A restarted controller needs the same port, so no other program may get it meanwhile.
    """
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", secrets.randbelow(first // 2) + first // 2))
            return int(listener.getsockname()[1])
