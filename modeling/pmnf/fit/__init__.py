"""Batched least squares: precise over hypotheses and call paths, and in closed form for short lists."""
