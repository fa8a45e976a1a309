"""A taxonomy put into words, and new tasks made from it."""
