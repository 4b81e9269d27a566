"""Listening, logging in, and one session per client."""
