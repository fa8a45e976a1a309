"""Taxonomies of failures, features of language, and improvement: research on top of groundfault.

A package of its own. It imports groundfault, and groundfault loads it by name where a command, a
stored taxonomy or a finder needs it.
"""
