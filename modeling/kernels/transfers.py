# SPDX-License-Identifier: Apache-2.0
"""Predict the time of messages from measured network times for their size.

The paper measures T_comm of the network once, and BF_comm is the part that a program does not hide (Eq. 2, Table 2 of
the APMT paper). A line through all sizes is not accurate enough, because MPI libraries change their protocol with the
size: few processes exchange large messages, and many processes exchange small messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..experiment import FloatArray
from ..machine import Network
from ..pmnf.model import Prediction
from .amounts import Amount


@dataclass(frozen=True)
class Transfers:
    """The seconds that a network takes for messages of the mean size, one after the other, per rank."""

    messages: Amount
    bytes: Amount
    network: Network

    def at(self, point: Mapping[str, float]) -> Prediction:
        """Return the seconds at a point, with a 90 % interval from those of messages and bytes."""
        messages, moved = self.messages.at(point), self.bytes.at(point)
        ends = [
            self._seconds(m, b) for m in (messages.lower, messages.upper) for b in (moved.lower, moved.upper) if m > 0
        ]
        value = self._seconds(messages.value, moved.value)
        extrapolates = messages.extrapolates or moved.extrapolates
        return Prediction(value, min([value, *ends]), max([value, *ends]), extrapolates)

    def is_of_bytes(self, point: Mapping[str, float]) -> bool:
        """Return whether the bytes of messages at a point take more time than messages without bytes."""
        messages, moved = self.messages.at(point).value, self.bytes.at(point).value
        return messages > 0 and self.network.seconds(moved / messages) > 2.0 * self.network.seconds(0.0)

    def _seconds(self, messages: float, moved: float) -> float:
        return messages * self.network.seconds(moved / messages) if messages > 0 else 0.0


def seconds_of(network: Network, messages: FloatArray, moved: FloatArray) -> FloatArray:
    """Return the seconds that a network takes for these numbers of messages with these total bytes, (C,)."""
    sizes = np.where(messages > 0, moved / np.maximum(messages, 1e-300), 0.0)
    return np.asarray(messages * np.array([network.seconds(size) for size in sizes.tolist()]))
