"""Synopses: what is measured, at which price, and what is released."""
