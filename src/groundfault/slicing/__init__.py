"""Embeddings of texts, for slicers."""
