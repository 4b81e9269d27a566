"""Homes of the ledger."""
