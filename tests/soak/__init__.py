"""Chaos: proxies under load while processes are killed, frozen and restarted around them, and what must hold always."""
