"""Help for tests of several folders."""
