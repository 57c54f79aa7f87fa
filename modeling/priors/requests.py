# SPDX-License-Identifier: Apache-2.0
"""Find the bytes for which completion operations wait: the bytes of the requests that were posted near them.

The bytes of a nonblocking operation are counted where it is posted. Its time is spent where the request is completed. A
halo exchange posts and completes in one function, or in two functions with a common caller.
"""

from __future__ import annotations

import numpy as np

from ..experiment import CallTree, FloatArray, RegionKind
from ..mpi_operations import operation_of


def requested_bytes(tree: CallTree, sent: FloatArray, received: FloatArray) -> FloatArray:
    """Return the bytes that each completion waits for, (paths, C, R), like `sent` and `received`; otherwise 0.

    These are the bytes of the nonblocking operations below the nearest caller that contains such operations. Sent and
    received bytes move at the same time, so the larger number counts.
    """
    names = [
        tree.region_of(path).name if tree.region_of(path).kind is RegionKind.MPI else "" for path in range(len(tree))
    ]
    operations = [operation_of(name) for name in names]
    posting = np.array([operation is not None and operation.posts for operation in operations], dtype=bool)
    below = np.where(posting[:, None, None], np.stack([np.nan_to_num(sent), np.nan_to_num(received)]), 0.0)
    has = posting.copy()
    for path in range(len(tree) - 1, -1, -1):
        caller = tree.parent[path]
        if caller >= 0:
            below[:, caller] += below[:, path]
            has[caller] |= has[path]
    result = np.zeros_like(sent)
    for path, operation in enumerate(operations):
        if operation is not None and operation.completes_requests:
            caller = int(tree.parent[path])
            while caller >= 0 and not has[caller]:
                caller = int(tree.parent[caller])
            if caller >= 0:
                result[path] = below[:, caller].max(axis=0)
    return result
