"""Functions and operators of text."""
