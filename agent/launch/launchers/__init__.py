# SPDX-License-Identifier: Apache-2.0
"""Launchers: where the program begins in a launch command, and what must be added so that its ranks are measured.

A new launcher is one class like the classes in local.py, listed in `FAMILIES` of detect.py.
"""

from __future__ import annotations

from .base import Launcher, LaunchPlan, LaunchRequest
from .detect import plan_launch
from .simulated import launch_command

__all__ = ["LaunchPlan", "LaunchRequest", "Launcher", "launch_command", "plan_launch"]
