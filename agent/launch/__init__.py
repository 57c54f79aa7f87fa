# SPDX-License-Identifier: Apache-2.0
"""Launchers, the choice of the MPI library, the node agent, and the raw folder of a run."""
