"""One screen a file: its content, its addresses, its keys."""
