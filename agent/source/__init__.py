# SPDX-License-Identifier: Apache-2.0
"""Static facts that the compiler pass stored in programs: functions, and the effort of source lines."""
