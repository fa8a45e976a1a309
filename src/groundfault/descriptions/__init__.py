"""Descriptions by a language model: proposed in words, and decided for every example blindly.

`propose_descriptions` asks for common traits of failing examples, `annotate` asks whether a
description holds for an example, and a `DescriptionColumn` turns the decisions into a property of
examples. `groundfault.describe` joins these steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groundfault.base.registry import open_front_door

if TYPE_CHECKING:
    from groundfault.descriptions.annotating import (
        DescriptionColumn as DescriptionColumn,
        annotate as annotate,
        measure_agreement as measure_agreement,
    )
    from groundfault.descriptions.proposing import (
        ExampleDescription as ExampleDescription,
        ProposingSettings as ProposingSettings,
        propose_descriptions as propose_descriptions,
    )

__getattr__, __dir__, __all__ = open_front_door(__name__)
