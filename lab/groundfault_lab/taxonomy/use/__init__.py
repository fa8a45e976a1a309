"""What a fitted taxonomy is used for."""
