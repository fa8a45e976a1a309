"""Improve a model by its error slices: reject, relabel, or learn from the suspected examples.

Nothing here judges a slice. What is measured on labelled examples comes beside the same thing done
by confidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from groundfault.base.registry import open_front_door

if TYPE_CHECKING:
    from groundfault_lab.improve.acquisition import (
        Acquisition as Acquisition,
        AcquisitionRound as AcquisitionRound,
        Auditor as Auditor,
        LeastConfident as LeastConfident,
        RandomOrder as RandomOrder,
        SuspectSlices as SuspectSlices,
    )
    from groundfault_lab.improve.active import (
        Comparison as Comparison,
        Learning as Learning,
        active_learning as active_learning,
    )
    from groundfault_lab.improve.selective import (
        Flipping as Flipping,
        SelectivePrediction as SelectivePrediction,
        Slicer as Slicer,
    )
    from groundfault_lab.stats.improvement import Improvement as Improvement

__getattr__, __dir__, __all__ = open_front_door(__name__)
