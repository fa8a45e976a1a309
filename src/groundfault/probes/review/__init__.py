"""Blind review of recorded runs."""
