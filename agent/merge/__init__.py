"""From the raw profiles of a run to its archive, and from run archives to an experiment."""
