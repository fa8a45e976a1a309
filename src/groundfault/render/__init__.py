"""Renderings of a report: HTML with figures, Markdown, and a terminal; they show it and compute
nothing.
"""
