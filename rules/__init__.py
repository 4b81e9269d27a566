"""The deciding half of Noisegate: pure functions from SQL and rules to a private plan."""
