"""What a synopsis measures, at which price, and what is released of it."""
