"""What has been revealed, and what still may be."""
