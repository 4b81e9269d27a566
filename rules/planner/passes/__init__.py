"""Passes over PostgreSQL's tree before its names are bound: each takes a tree and gives one."""
