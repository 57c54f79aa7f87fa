# SPDX-License-Identifier: Apache-2.0
"""Models of counts: one grammar of factors, one search, one criterion in bits.

A vector of counts over configurations, summed over the ranks, goes through `program.fit`: `factors` makes the factors
of the grammar, `products` finds products of them that reproduce the counts exactly, `sums` finds sums of a few terms
with an estimated error, `laws` weighs all by their bits and predicts. docs/design/counts.md explains the engine.
"""
