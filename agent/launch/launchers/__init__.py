# SPDX-License-Identifier: Apache-2.0
"""Launchers: find the program in a launch command, and add the parts that measure its ranks.

A new launcher is one class like the classes in local.py, listed in `FAMILIES` of detect.py.
"""

from __future__ import annotations

from .base import Launcher, LaunchPlan, LaunchRequest
from .detect import launch_command, plan_launch

__all__ = ["LaunchPlan", "LaunchRequest", "Launcher", "launch_command", "plan_launch"]
