"""Queries over public tables alone, as text that the real database may run: see `queries`."""
