# SPDX-License-Identifier: Apache-2.0
"""Load experiments and models from folders and files."""
