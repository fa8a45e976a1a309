"""Improve a model by its error slices: reject, relabel, or learn from the suspected examples.

Nothing here judges a slice. What is measured on labelled examples comes beside the same thing done
by confidence.
"""

from __future__ import annotations

from groundfault.base.deprecation import rename_attributes
from groundfault.improve.acquisition import (
    Acquisition,
    AcquisitionRound,
    Auditor,
    LeastConfident,
    RandomOrder,
    SuspectSlices,
)
from groundfault.improve.active import Comparison, Learning, active_learning
from groundfault.improve.selective import Flipping, SelectivePrediction, Slicer
from groundfault.stats.improvement import Improvement

__all__ = [
    "Acquisition",
    "AcquisitionRound",
    "Auditor",
    "Comparison",
    "Flipping",
    "Improvement",
    "Learning",
    "LeastConfident",
    "RandomOrder",
    "SelectivePrediction",
    "Slicer",
    "SuspectSlices",
    "active_learning",
]

__getattr__ = rename_attributes(
    __name__,
    {
        "Confidence": "groundfault.improve:LeastConfident",
        "Random": "groundfault.improve:RandomOrder",
        "Round": "groundfault.improve:AcquisitionRound",
        "Slices": "groundfault.improve:SuspectSlices",
    },
)
