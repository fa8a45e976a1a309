"""Finders: each proposes candidates from discovery evidence, one proposer a file."""
