"""Launch, collect, merge, campaigns and the command line.

Nothing is imported here: the node agent runs as `python -m quipu.agent.launch.node` beside the measured program and
must start without numpy or pyarrow. Import the modules themselves, such as `quipu.agent.merge.experiment`.
"""
