"""What happens to PostgreSQL's tree before its names are bound: each pass takes a tree and gives one."""
