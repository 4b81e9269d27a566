"""Functions and operators of dates, times and intervals."""
