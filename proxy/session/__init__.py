"""The conversation of one logged-in client."""
