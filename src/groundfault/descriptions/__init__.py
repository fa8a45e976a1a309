"""Descriptions by a language model: proposed in words, and decided for every example blindly.

`propose_descriptions` asks what failing examples have in common, `annotate` whether a description
holds for an example, and a `DescriptionColumn` makes of the decisions a property like any other.
`groundfault.describe` joins them."""

from __future__ import annotations

from groundfault.descriptions.annotating import DescriptionColumn, annotate, measure_agreement
from groundfault.descriptions.proposing import (
    ExampleDescription,
    ProposingSettings,
    propose_descriptions,
)

__all__ = [
    "DescriptionColumn",
    "ExampleDescription",
    "ProposingSettings",
    "annotate",
    "measure_agreement",
    "propose_descriptions",
]
