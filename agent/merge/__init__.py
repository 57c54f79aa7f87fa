# SPDX-License-Identifier: Apache-2.0
"""From the raw profiles of a run to its archive, and from run archives to an experiment."""
