"""The rules file: what it may say, how it is read, what it means for a catalog."""
