"""Account for what has been revealed, and for what still may be."""
