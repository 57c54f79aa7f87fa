# SPDX-License-Identifier: Apache-2.0
"""What measurements leave open of a model, and how that is said."""
