"""What the command line does: for each command its arguments, and what it does with them."""
