"""Runs of agents, step by step: the table of steps, behaviours, and how they go with failing."""
