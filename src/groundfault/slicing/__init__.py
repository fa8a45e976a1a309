"""Parameters and embeddings of mixture slicers."""
