"""The analyst's text: read by PostgreSQL's grammar, parsed for the planner."""
