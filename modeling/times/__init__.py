# SPDX-License-Identifier: Apache-2.0
"""Times of computation: known amounts of work times rates that all configurations share."""
