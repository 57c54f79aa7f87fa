# SPDX-License-Identifier: Apache-2.0
"""Reader of the raw profile that the runtime writes for each process (agent/runtime/profile.def)."""
