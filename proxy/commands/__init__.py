"""Commands of the command line: for each its arguments, and what it does with them."""
