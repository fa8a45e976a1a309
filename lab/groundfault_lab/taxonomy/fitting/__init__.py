"""From evidence to a taxonomy."""
