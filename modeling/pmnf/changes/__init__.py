# SPDX-License-Identifier: Apache-2.0
"""Measurements that no one model holds for: changes of behaviour, single exceptions, runs that were held up."""
