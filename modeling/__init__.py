# SPDX-License-Identifier: Apache-2.0
"""From measurements to models and decisions. Neither reads files nor prints."""
