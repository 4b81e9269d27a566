"""The empty twin: an embedded PostgreSQL with the schema and none of the rows."""
