# SPDX-License-Identifier: Apache-2.0
"""Read the static facts that the compiler pass stores in programs: functions, call graph, effort of source lines."""
