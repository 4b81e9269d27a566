"""Values of PostgreSQL's types: what they are, what they can be, and typed expressions over columns."""
