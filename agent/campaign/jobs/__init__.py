"""Runs of a campaign as jobs of a batch scheduler."""
