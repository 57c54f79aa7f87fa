# SPDX-License-Identifier: Apache-2.0
"""Compute the communication matrix of a run from the partners that each rank recorded (mpi_wrap/native/partners.h)."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from ..archive.run import CommunicationMatrix
from .ranks import RankedProcess

_KEY = "partners:"
_NUMBER = "([0-9]{1,18})"
_ENTRY = re.compile(rf"([0-9]{{1,9}}|\*):{_NUMBER}:{_NUMBER}:{_NUMBER}:{_NUMBER}", re.ASCII)


def communication_of(processes: Iterable[RankedProcess]) -> tuple[CommunicationMatrix | None, list[str]]:
    """Return the communication matrix (None if no rank recorded partners), and texts about invalid records."""
    rows: list[tuple[int, int, int, int]] = []
    problems = []
    for process in processes:
        texts = (text for key, text in process.profile.attributes.items() if key.startswith(_KEY))
        for entry in (entry for text in texts for entry in text.split()):
            found = _ENTRY.fullmatch(entry)
            if found is None:
                problems.append(f"rank {process.rank}: {entry[:60]!r} contains no partners and was left out")
                continue
            partner = -1 if found[1] == "*" else int(found[1])
            sent, messages, fetched, gets = (int(found[place]) for place in range(2, 6))
            rows += [(process.rank, partner, sent, messages)] * (messages > 0)
            rows += [(partner, process.rank, fetched, gets)] * (gets > 0)
    if not rows:
        return None, problems
    sender, receiver, size, messages = np.array(rows, dtype=np.int64).T
    pairs, place = np.unique((sender + 1) << 32 | (receiver + 1), return_inverse=True)
    sums = np.zeros((2, pairs.size), dtype=np.int64)
    np.add.at(sums[0], place, size)
    np.add.at(sums[1], place, messages)
    return CommunicationMatrix((pairs >> 32) - 1, (pairs & 0xFFFFFFFF) - 1, *sums), problems
