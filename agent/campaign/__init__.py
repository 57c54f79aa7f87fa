"""Measuring: one repetition of one configuration, and all of an experiment that a file declares."""
