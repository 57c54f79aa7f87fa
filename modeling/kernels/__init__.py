# SPDX-License-Identifier: Apache-2.0
"""Model kernels from counters: computation, memory and communication of each kernel, and its limit.

Method ("the paper" in this folder): N. Ding, V. W. Lee, W. Xue, W. Zheng: APMT: an automatic hardware counter-based
performance modeling tool for HPC applications. CCF Transactions on High Performance Computing 2, 2020.

variables: number of processes and problem size; identify: which functions are kernels; counts, computation,
refinement: CPI, T_comp, T_mem, BF_mem; communication, transfers: T_comm; model: the program; limits: the limit of a
kernel as text; other_machine: predictions for another machine.
"""

from __future__ import annotations

from .identify import Kernel, KernelKind
from .model import ProgramModel, ProgramPrediction, model_program

__all__ = ["Kernel", "KernelKind", "ProgramModel", "ProgramPrediction", "model_program"]
