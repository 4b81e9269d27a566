"""Where the ledger lives."""
