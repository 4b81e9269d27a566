"""Bind names, types and units: from the planner's syntax to a tree of relations."""
