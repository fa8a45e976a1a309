"""Improve a model with what slicers say of it: leave out, relabel, or learn from the examples they
suspect.

Nothing here judges a slice. What is measured on labelled examples comes beside the same thing done
by confidence."""

from __future__ import annotations

from groundfault.improve.acquisition import Acquisition, Auditor, Confidence, Random, Round, Slices
from groundfault.improve.active import active_learning
from groundfault.improve.flipping import Flipping
from groundfault.improve.learning import Comparison, Learning
from groundfault.improve.selective import SelectivePrediction, Slicer
from groundfault.stats.improvement import Improvement

__all__ = [
    "Acquisition",
    "Auditor",
    "Comparison",
    "Confidence",
    "Flipping",
    "Improvement",
    "Learning",
    "Random",
    "Round",
    "SelectivePrediction",
    "Slicer",
    "Slices",
    "active_learning",
]
