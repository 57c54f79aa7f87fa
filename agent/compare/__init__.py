"""Two states of a program side by side: differences, baselines, and what is expected of its effort."""
