# SPDX-License-Identifier: Apache-2.0
"""Launch, collect, merge, campaigns and the command line.

Nothing is imported here, so that each command imports only what it needs.
Import the modules themselves, such as `quipu.agent.merge.experiment`.
"""
