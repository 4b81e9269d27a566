"""The real database: its catalog, and inner statements."""
