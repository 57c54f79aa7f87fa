# SPDX-License-Identifier: Apache-2.0
"""Launch programs, collect and merge their profiles, run campaigns, and read the command line.

This package imports none of its modules, so that each command imports only what it needs. Import the modules
themselves, such as `quipu.agent.merge.experiment`.
"""
