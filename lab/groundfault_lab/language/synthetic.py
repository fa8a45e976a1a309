"""The old place of synthetic detection, which is a study: ``groundfault_studies``."""

from __future__ import annotations

from groundfault.base.deprecation import rename_attributes

_PLACE = "groundfault_studies.synthetic_detection"
_NAMES = ("FEWEST", "Detection", "DetectionScore", "Mix", "detect", "make_mixes", "score_naming")

__getattr__ = rename_attributes(
    __name__,
    {name: f"{_PLACE}:{name}" for name in _NAMES}
    | {"mixes": f"{_PLACE}:make_mixes", "naming": f"{_PLACE}:score_naming"},
)
