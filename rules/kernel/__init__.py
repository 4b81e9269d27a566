"""The only maker of what runs on the real database: what it can enforce it does not believe."""
