"""The registry: every function and operator that may stand over protected rows, each made so that it cannot fail."""
