"""From a bound query to a plan, one pass a module."""
