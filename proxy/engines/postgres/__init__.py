"""PostgreSQL as the real database."""
