"""Counts on disk, and where they come from."""
