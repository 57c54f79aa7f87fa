# SPDX-License-Identifier: Apache-2.0
"""Static facts that the compiler pass left inside of programs: functions, and the effort of source lines."""
