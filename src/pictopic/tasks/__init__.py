"""From topics to answers."""
