"""Synopses: made, kept, fitted, and shown in the twin."""
