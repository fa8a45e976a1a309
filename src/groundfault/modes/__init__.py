"""Failure modes: a short list of readable rules that say where a model fails."""
