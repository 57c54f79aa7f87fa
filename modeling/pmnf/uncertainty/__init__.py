# SPDX-License-Identifier: Apache-2.0
"""The uncertainty of a model, as numbers and as notes."""
