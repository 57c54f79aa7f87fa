# SPDX-License-Identifier: Apache-2.0
"""Launchers: find the program in a launch command, and change the command so that Quipu measures the ranks.

To support a new launcher, write a class like those in local.py, and add it to `FAMILIES` in detect.py.
"""

from __future__ import annotations

from .base import Launcher, LaunchPlan, LaunchRequest
from .detect import launch_command, plan_launch

__all__ = ["LaunchPlan", "LaunchRequest", "Launcher", "launch_command", "plan_launch"]
