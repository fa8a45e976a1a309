"""One screen a file: content, addresses and keys."""
