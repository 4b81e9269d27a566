"""Statements with proofs of their own beside the bounded ones: nothing of the kernel but these knows of them."""
