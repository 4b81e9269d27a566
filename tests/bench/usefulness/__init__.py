"""Questions as analysts ask them of small databases, and how many of the answers are of use."""
