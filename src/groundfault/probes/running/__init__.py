"""Runs: policies put prompts to a model within a budget."""
