"""Mixture slicers, and what they stand on."""
