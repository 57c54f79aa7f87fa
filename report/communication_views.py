# SPDX-License-Identifier: Apache-2.0
"""Views of the communication matrix of a run: bytes and messages from rank to rank, or between blocks of ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from quipu.modeling.experiment import FloatArray, IntArray

from .json_views import document_json
from .measured_run import Rank

MOST_BLOCKS = 64  # default of the largest number of rows of a matrix
_MOST_CELLS = 20_000  # largest number of cells of all configurations in a page
_MOST_PAIRS = 10  # number of pairs of ranks in a view
_MOST_DISTANCES = 6  # number of distances between ranks in a view


class Pairs(Protocol):
    """Bytes and messages from rank to rank, each pair of ranks once. Arrays of shape (pairs,); rank -1: unknown."""

    @property
    def sender(self) -> IntArray: ...  # noqa: D102
    @property
    def receiver(self) -> IntArray: ...  # noqa: D102
    @property
    def bytes(self) -> IntArray: ...  # noqa: D102
    @property
    def messages(self) -> IntArray: ...  # noqa: D102


@dataclass(frozen=True)
class PairRow:
    """The bytes and messages that one rank sends to another."""

    sender: int
    receiver: int
    bytes: int
    messages: int


@dataclass(frozen=True, eq=False)
class CommunicationView:
    """The communication matrix of a run. Shares refer to bytes, or to messages if all messages are empty.

    - ranks: number of ranks. ranks_per_block: number of consecutive ranks in a row; 1 if every rank has a row.
    - bytes, messages: shape (blocks, blocks); rows are senders.
    - total_bytes, total_messages: of all pairs. unknown: bytes to or from unknown ranks.
    - partners: minimum, mean and maximum number of ranks to which a rank sends.
    - distances: (rank of the receiver minus rank of the sender, its share), the largest share first.
    - within_nodes: share between ranks of the same node; None if the nodes are unknown or there is only one.
    - busiest: the rank that sends most, and the ratio of its amount to the mean over ranks.
    - pairs: the pairs with the largest amounts.
    """

    ranks: int
    ranks_per_block: int
    bytes: IntArray
    messages: IntArray
    total_bytes: int
    total_messages: int
    unknown: int
    partners: tuple[int, float, int]
    distances: tuple[tuple[int, float], ...]
    within_nodes: float | None
    busiest: tuple[int, float]
    pairs: tuple[PairRow, ...]


def communication_view(
    pairs: Pairs, ranks: int, records: Sequence[Rank] = (), most_blocks: int = MOST_BLOCKS
) -> CommunicationView:
    """Return the view of a communication matrix.

    ranks: number of ranks of the run. records: contain the node of each rank. most_blocks: largest number of rows.
    """
    known = (pairs.sender >= 0) & (pairs.receiver >= 0)
    sender, receiver, size, messages = (
        column[known] for column in (pairs.sender, pairs.receiver, pairs.bytes, pairs.messages)
    )
    ranks = max(ranks, 1 + int(max(sender.max(initial=0), receiver.max(initial=0))))
    per_block = -(-ranks // most_blocks)
    weight = size if size.any() else messages
    total = max(1, int(weight.sum()))
    senders, place = np.unique(sender, return_inverse=True)
    sent, partners = np.bincount(place, weight), np.bincount(place)
    order = np.argsort(-weight, kind="stable")[:_MOST_PAIRS]
    columns = (column[order].tolist() for column in (sender, receiver, size, messages))
    distances, place = np.unique(receiver - sender, return_inverse=True)
    shares = np.bincount(place, weight, distances.size) / total
    largest = np.argsort(-shares, kind="stable")[:_MOST_DISTANCES]
    hosts = {record.rank: record.host for record in records}
    row, column, blocks = sender // per_block, receiver // per_block, -(-ranks // per_block)
    return CommunicationView(
        ranks,
        per_block,
        _blocks(row, column, size, blocks),
        _blocks(row, column, messages, blocks),
        int(pairs.bytes.sum()),
        int(pairs.messages.sum()),
        int(pairs.bytes[~known].sum()),
        (int(partners.min()) if senders.size == ranks else 0, sender.size / ranks, int(partners.max(initial=0))),
        tuple(zip(distances[largest].tolist(), shares[largest].tolist(), strict=True)),
        _within_nodes(sender, receiver, weight, hosts),
        (int(senders[sent.argmax()]), float(sent.max() * ranks / total)) if senders.size else (0, 0.0),
        tuple(PairRow(*row) for row in zip(*columns, strict=True)),
    )


def _blocks(row: IntArray, column: IntArray, values: IntArray, blocks: int) -> IntArray:
    """Return the sums of the values of pairs, shape (blocks, blocks)."""
    result = np.zeros((blocks, blocks), dtype=np.int64)
    np.add.at(result, (row, column), values)
    return result


def _within_nodes(sender: IntArray, receiver: IntArray, weight: IntArray, hosts: Mapping[int, str]) -> float | None:
    """Return the share of the weight between ranks of the same node; None with fewer than two nodes."""
    if len(set(hosts.values())) < 2 or not weight.any():
        return None
    known = np.array(sorted(hosts))
    _, number = np.unique([hosts[rank] for rank in known.tolist()], return_inverse=True)
    here, there = (np.searchsorted(known, ranks).clip(max=known.size - 1) for ranks in (sender, receiver))
    same = (known[here] == sender) & (known[there] == receiver) & (number[here] == number[there])
    return float(weight[same].sum() / weight.sum())


def communication_json(title: str, view: CommunicationView, pairs: Pairs) -> dict[str, Any]:
    """Return a communication matrix as a JSON document, with all pairs of ranks. title: name of the run."""
    columns = (getattr(pairs, name).tolist() for name in ("sender", "receiver", "bytes", "messages"))
    return document_json(
        "communication",
        title,
        ranks=view.ranks,
        bytes=view.total_bytes,
        messages=view.total_messages,
        partners=dict(zip(("min", "mean", "max"), view.partners, strict=True)),
        within_nodes=view.within_nodes,
        pairs=[
            {"sender": sender, "receiver": receiver, "bytes": size, "messages": messages}
            for sender, receiver, size, messages in zip(*columns, strict=True)
        ],
    )


def communication_data(
    matrices: Mapping[tuple[float, ...], tuple[Pairs, int]], points: FloatArray
) -> list[dict[str, Any]]:
    """Return the communication matrices for the report, with larger blocks if they have too many cells.

    matrices: the pairs and the number of ranks of one run, by configuration. points: all configurations, shape
    (configurations, parameters). In the result, "configuration" is an index into points, "step" the number of ranks per
    block, and each cell is [row, column, bytes, messages].
    """
    places = {tuple(point): at for at, point in enumerate(points.tolist())}
    found = {places[point]: matrix for point, matrix in matrices.items() if point in places}
    most = MOST_BLOCKS
    while True:
        views = {at: communication_view(pairs, ranks, most_blocks=most) for at, (pairs, ranks) in found.items()}
        if most <= 8 or sum(np.count_nonzero(view.messages) for view in views.values()) <= _MOST_CELLS:
            break
        most //= 2
    return [
        {
            "configuration": at,
            "ranks": view.ranks,
            "step": view.ranks_per_block,
            "unknown": view.unknown,
            "cells": [
                [int(row), int(column), int(view.bytes[row, column]), int(view.messages[row, column])]
                for row, column in np.argwhere(view.messages)
            ],
        }
        for at, view in sorted(views.items())
    ]
