# SPDX-License-Identifier: Apache-2.0
"""Reader of what the runtime writes: the raw profile of one process (agent/runtime/profile.def)."""
