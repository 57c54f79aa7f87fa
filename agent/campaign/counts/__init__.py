# SPDX-License-Identifier: Apache-2.0
"""Count-only runs of a campaign with a target: at which points, in which order, at what cost."""
