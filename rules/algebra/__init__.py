"""Typed relations: what each node promises about units, rows and domains."""
