"""The client library: what reports lose, and that they say what their law says."""
