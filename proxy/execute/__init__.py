"""The path of one statement."""
