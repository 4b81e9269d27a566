"""Aggregates: the integer measures of which each is made."""
