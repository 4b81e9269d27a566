"""Integers in, noised integers out."""
