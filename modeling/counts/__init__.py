# SPDX-License-Identifier: Apache-2.0
"""Model counts (blocks, instructions, bytes, messages, visits) by formulas, which are called laws.

- A vector is one count at all configurations, summed over the ranks.
- A law is a formula for a vector. It is built from the factors of one grammar. An exact law reproduces all counts.
- The bits of a law are -log2 of its prior probability, plus the bits of the deviations of the counts from the law. A
  law with fewer bits is likelier.
- The extent P_d of a process grid is the number of parts along dimension d.

Modules:

- predictions, models: the interface to experiments (experiment.py) and models (modeling/pmnf).
- vectors: collects the vectors of an experiment.
- program: fits the laws of all vectors (`fit`).
- factors, prices: the grammar, and the bits of its parts.
- products, exact_sums, polynomials: find exact laws.
- sums: finds sums of terms with an estimated error.
- followed: explains counts by other counts.
- laws, distribution: weigh laws by their bits, and predict.
- formulas: converts laws to terms of models.
- deciding: finds runs that distinguish laws.
- unvaried: finds directions of the parameters in which no configuration changed.

docs/design/counts.md explains the method.
"""
