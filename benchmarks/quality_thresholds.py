# SPDX-License-Identifier: Apache-2.0
"""Halve and double the thresholds of the quality of a measurement, and count false alarms and misses.

    make bench-quality_thresholds
    make bench-quality_thresholds ARGS='--times 10'

Load by other programs: a program computes on all processors, while another program uses no processor, a part of one, or
a whole one. The processes of the first program record how long they waited for a processor: wall time minus processor
time. A launch is disturbed if this waiting is more than 5 % of its wall time. `OTHERS_MATTER` (archive/metadata.py) and
`_SHORTEST` (launch/processors.py) decide from the load alone, as for a run.

Deviation: five repetitions scatter by 3 % or 10 %. At most one of them is slowed down by a factor. `DEVIATES`
(merge/experiment.py) names the run that is far from the median.

The last line is one JSON object with two shares for each threshold and value: `false_alarms` (share of the undisturbed
launches or repetitions that were reported) and `misses` (share of the disturbed ones that were not reported). They are
null if no case of this kind occurred.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np
from quipu.agent.archive.metadata import OTHERS_MATTER
from quipu.agent.launch.processors import _SHORTEST, busy_seconds, used_by_others
from quipu.agent.merge.experiment import DEVIATES

WAITED = 0.05
LOADS, LENGTHS = (0.0, 0.15, 0.4, 1.0), (0.1, 0.2, 0.4, 0.8)
SPIN = """
import sys, time
end = time.process_time() + float(sys.argv[1])
begin = time.monotonic()
while time.process_time() < end:
    pass
print(time.monotonic() - begin, time.process_time())
"""
PART = """
import sys, time
while True:
    begin = time.monotonic()
    while time.monotonic() - begin < 0.02 * float(sys.argv[1]):
        pass
    time.sleep(0.02 * (1 - float(sys.argv[1])))
"""


def launch(length: float, load: float) -> tuple[float, float, float | None]:
    """Return the share of waiting for a processor in a launch, its duration, and the recorded load."""
    others = [subprocess.Popen([sys.executable, "-c", PART, str(load)])] if load else []
    processors = len(os.sched_getaffinity(0))
    time.sleep(0.1)
    before, began = busy_seconds(), time.monotonic()
    ranks = [
        subprocess.Popen([sys.executable, "-c", SPIN, str(length)], stdout=subprocess.PIPE, text=True)
        for _ in range(processors)
    ]
    found = [list(map(float, rank.communicate()[0].split())) for rank in ranks]
    seconds = time.monotonic() - began
    own = sum(used for _, used in found)
    noticed = max(0.0, busy_seconds() - before - own) / seconds
    for other in others:
        other.kill()
        other.wait()
    waited = max(1 - length / wall for wall, _ in found)
    return waited, seconds, noticed


def rates(disturbed: list[bool], alarmed: list[bool]) -> dict[str, float | None]:
    """Return the shares of false alarms and misses."""
    pairs = list(zip(disturbed, alarmed, strict=True))
    good, bad = [alarm for true, alarm in pairs if not true], [not alarm for true, alarm in pairs if true]
    return {
        "false_alarms": round(sum(good) / len(good), 3) if good else None,
        "misses": round(sum(bad) / len(bad), 3) if bad else None,
    }


def loads(times: int) -> dict[str, dict[str, float | None]]:
    """Return the rates of both thresholds of load."""
    launches = [launch(length, load) for _ in range(times) for load in LOADS for length in LENGTHS]
    disturbed = [waited > WAITED for waited, _, _ in launches]
    result = {}
    for value in (OTHERS_MATTER / 2, OTHERS_MATTER, 2 * OTHERS_MATTER):
        alarms = [seconds >= _SHORTEST and (load or 0) > value for _, seconds, load in launches]
        result[f"OTHERS_MATTER {value:g}"] = rates(disturbed, alarms)
    for value in (_SHORTEST / 2, _SHORTEST, 2 * _SHORTEST):
        alarms = [seconds >= value and (load or 0) > OTHERS_MATTER for _, seconds, load in launches]
        result[f"_SHORTEST {value:g}"] = rates(disturbed, alarms)
    assert used_by_others(1.0, 0.0, _SHORTEST) is not None
    return result


def deviations() -> dict[str, dict[str, float | None]]:
    """Return the rates of the threshold of deviation; the excess over 1 is halved and doubled."""
    random = np.random.default_rng(1)
    disturbed, ratios = [], []
    for scatter in (0.03, 0.1):
        for slower in (1.0, 1.0, 1.0, 1.6, 2.0, 3.0):
            for _ in range(500):
                runs = np.exp(scatter * random.standard_normal(5))
                runs[0] *= slower
                away = float(runs[0] / np.median(runs))
                disturbed.append(slower > 1.0)
                ratios.append(max(away, 1 / away))
    values = (1 + (DEVIATES - 1) / 2, DEVIATES, 1 + 2 * (DEVIATES - 1))
    return {f"DEVIATES {value:g}": rates(disturbed, [ratio > value for ratio in ratios]) for value in values}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=4, help="launches of each kind")
    arguments = parser.parse_args()
    found = {**loads(arguments.times), **deviations()}
    for name, entry in found.items():
        print(f"{name:20} false alarms {entry['false_alarms']}, misses {entry['misses']}")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
