"""Pages of what this package finds."""
