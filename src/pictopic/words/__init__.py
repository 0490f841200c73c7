"""From pixels and tags to words."""
