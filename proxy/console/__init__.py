"""For operators: metrics, health, and the console."""
