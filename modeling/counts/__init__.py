# SPDX-License-Identifier: Apache-2.0
"""Model counts by formulas (laws): one grammar of factors, one criterion, the description length in bits.

A vector is one count at all configurations, summed over the ranks. A law is a formula for a vector; its bits are -log2
of its prior probability plus the bits of the deviations, so laws with fewer bits are likelier. An exact law reproduces
all counts. The extent P_d of a process grid is its number of parts along dimension d.

`program.fit` models vectors. `factors` lists the factors of the grammar. `products`, `exact_sums` and `polynomials`
find exact laws; `sums` finds sums of terms with an estimated error; `followed` explains counts by other counts. `laws`
weighs laws by their bits, and predicts. `deciding` finds runs that distinguish laws. `predictions` and `models` are the
interface to experiments and models. docs/design/counts.md explains the method.
"""
