"""Computations without a noun of evaluation."""
