"""Slicers: mixtures (Edisa, Domino), a ball (Spotlight), conjunctions (SliceLine); `propose`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groundfault.base.registry import open_front_door

if TYPE_CHECKING:
    from groundfault_lab.slicing.domino import Domino as Domino
    from groundfault_lab.slicing.edisa import Edisa as Edisa
    from groundfault_lab.slicing.fusion import Fusion as Fusion
    from groundfault_lab.slicing.proposals import Proposals as Proposals, propose as propose
    from groundfault_lab.slicing.sliceline import SliceLine as SliceLine
    from groundfault_lab.slicing.spotlight import Spotlight as Spotlight

__getattr__, __dir__, __all__ = open_front_door(__name__)
