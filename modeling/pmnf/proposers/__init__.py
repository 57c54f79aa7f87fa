"""Proposers of hypotheses, one file each: they return candidates, all call paths at once."""
