# SPDX-License-Identifier: Apache-2.0
"""Measurements that a single model does not describe: changes of behaviour, single exceptions, disturbed runs."""
