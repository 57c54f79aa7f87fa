# SPDX-License-Identifier: Apache-2.0
"""Model counts with one grammar of factors, one search, and one criterion: the description length in bits.

A vector is one count at all configurations, summed over the ranks. `program.fit` models vectors. `factors` lists
the factors of the grammar. `products` finds products of factors that reproduce the counts exactly. `sums` finds sums of
a few terms with an estimated error. `laws` weighs all of them by their bits, and predicts. docs/design/counts.md
explains the engine.
"""
