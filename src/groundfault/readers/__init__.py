"""Readers: one log format a file."""
