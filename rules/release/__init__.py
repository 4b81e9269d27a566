"""From exact integers to released columns."""
