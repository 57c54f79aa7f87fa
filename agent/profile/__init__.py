# SPDX-License-Identifier: Apache-2.0
"""Read the raw profiles: the runtime writes one for each process, in the layout of agent/runtime/profile.def."""
