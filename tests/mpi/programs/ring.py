# SPDX-License-Identifier: Apache-2.0
"""An mpi4py program: objects, buffers and a collective around a ring."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, ranks = comm.rank, comm.size
values = np.arange(100.0)
received = np.empty(100)
request = comm.Irecv(received, source=(rank - 1) % ranks)
comm.Send(values, dest=(rank + 1) % ranks)
request.Wait()
total = np.empty(100)
comm.Allreduce(values, total, op=MPI.SUM)
assert np.array_equal(received, values)
assert np.array_equal(total, ranks * values)
rows = [
    ("MPI_Irecv", 0, 800, 0, 1, ranks),
    ("MPI_Send", 800, 0, 1, 0, ranks),
    ("MPI_Allreduce", 800, 800, 1, 1, ranks),
]
text = "".join("\t".join(map(str, row)) + "\n" for row in rows)
(Path(sys.argv[1]) / f"expected-{rank}.tsv").write_text(text)
