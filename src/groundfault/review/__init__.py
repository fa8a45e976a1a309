"""People who decide: blind reviewers of responses, and panels of annotators of an audit's cases.

Reviewers answer three questions about an `Item`. The item is named by the hash of what it shows, so
its id tells no more than a reviewer sees. A `Decision` is stored before the next item is shown and
is never changed; the last one of a reviewer counts. An `AnnotatorPanel` gives a
`groundfault.sequential.SequentialAudit` the scores that its labellers agree on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groundfault.base.registry import open_front_door

if TYPE_CHECKING:
    from groundfault.review.annotators import (
        AnnotatorPanel as AnnotatorPanel,
        PanelSeat as PanelSeat,
    )
    from groundfault.review.decision import (
        Decision as Decision,
        Resolution as Resolution,
        agreement as agreement,
        resolve as resolve,
    )
    from groundfault.review.queue import Item as Item, Queue as Queue, open_items as open_items
    from groundfault.review.session import Session as Session, Store as Store

__getattr__, __dir__, __all__ = open_front_door(__name__)
