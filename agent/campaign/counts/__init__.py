# SPDX-License-Identifier: Apache-2.0
"""Count-only runs of a campaign with a target: their points, order and cost."""
