"""Exports: what an audit found, given back to the tools that people work in; one file a tool.

Every export starts from `Slices`: a report, the evidence it is of, and which example is on which
slice."""

from __future__ import annotations

from groundfault.exports.slices import ReportSlices

__all__ = ["ReportSlices"]
