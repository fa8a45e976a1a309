"""One screen a file: what it shows, its addresses, its keys."""
