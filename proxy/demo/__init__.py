"""A shop of our own to try Noisegate on: data, rules, certificate, and the one command that brings them together."""
