"""Blind review of what runs recorded."""
