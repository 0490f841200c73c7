"""From counts to topics."""
