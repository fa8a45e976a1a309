"""The form of a diagnosis as JSON, and its version."""

from __future__ import annotations

import msgspec

SCHEMA_VERSION = 1


class StoredWeakness(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`Weakness`, and its excess."""

    cluster: int
    name: str
    size: int
    asked: int
    failed: int
    rate: float
    low: float
    high: float
    expected: float
    published: bool
    excess: float


class DiagnosisData(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The content of a diagnosis as JSON; without a version it is version 1, as in 0.1.0."""

    weaknesses: tuple[StoredWeakness, ...]
    next: tuple[str, ...]
    answers: int
    unknown: int
    strategy: str
    level: float
    verdict: str
    groundfault_diagnosis: int = SCHEMA_VERSION


class DiagnosisVersion(msgspec.Struct):
    """What is read first: the version alone."""

    groundfault_diagnosis: int = 1
