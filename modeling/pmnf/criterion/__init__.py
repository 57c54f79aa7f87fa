"""Criteria that choose among candidates: evidence, SMAPE, the rule of Extra-P."""
