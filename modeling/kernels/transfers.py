# SPDX-License-Identifier: Apache-2.0
"""Predict the time of messages from measured network times for their size.

The paper measures T_comm of the network once, and BF_comm is the part that a program does not hide (Eq. 2, Table 2 of
the APMT paper). A line through all sizes is not accurate enough, because MPI libraries change their protocol with the
size: few processes exchange large messages, and many processes exchange small messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..experiment import FloatArray
from ..machine import Network


class Units(Protocol):
    """A number of calls, messages, bytes or seconds."""

    def at(self, point: Mapping[str, float]) -> float:
        """Return the number at a point."""


@dataclass(frozen=True)
class Transfers:
    """The seconds that a network takes for messages of the mean size, one after the other, per rank."""

    messages: Units
    bytes: Units
    network: Network

    def at(self, point: Mapping[str, float]) -> float:
        """Return the seconds at a point."""
        messages, moved = self.messages.at(point), self.bytes.at(point)
        return messages * self.network.seconds(moved / messages) if messages > 0 else 0.0

    def is_of_bytes(self, point: Mapping[str, float]) -> bool:
        """Return whether the bytes of messages at a point take more time than messages without bytes."""
        messages, moved = self.messages.at(point), self.bytes.at(point)
        return messages > 0 and self.network.seconds(moved / messages) > 2.0 * self.network.seconds(0.0)


def seconds_of(network: Network, messages: FloatArray, moved: FloatArray) -> FloatArray:
    """Return the seconds that a network takes for these numbers of messages with these total bytes, (C,)."""
    sizes = np.where(messages > 0, moved / np.maximum(messages, 1e-300), 0.0)
    return np.asarray(messages * np.array([network.seconds(size) for size in sizes.tolist()]))
