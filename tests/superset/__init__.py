"""Apache Superset, as a newcomer meets it: its own server, its charts in a real browser, a running proxy behind."""
