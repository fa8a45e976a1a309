"""Promises under attack: worlds made to break what groundfault says of its own errors.

Each module but two holds the worlds of one topic in a tuple ``ATTACKS``; `attack` says what an
attack is, and `study` measures them all, as ``groundfault lab study attacks``.
"""
