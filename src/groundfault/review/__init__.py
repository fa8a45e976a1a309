"""People who decide: blind reviewers of responses, and panels of annotators of an audit's cases.

Reviewers answer three questions about an `Item`. The item is named by the hash of what it shows, so
its id tells no more than a reviewer sees. A `Decision` is stored before the next item is shown and
is never changed; the last one of a reviewer counts. An `AnnotatorPanel` gives a
`groundfault.sequential.SequentialAudit` the scores that its labellers agree on."""

from __future__ import annotations

from groundfault.review.annotators import AnnotatorPanel, PanelSeat
from groundfault.review.decision import Decision, Resolution, agreement, resolve
from groundfault.review.queue import Item, Queue, open_items
from groundfault.review.session import Session, Store

__all__ = [
    "AnnotatorPanel",
    "Decision",
    "Item",
    "PanelSeat",
    "Queue",
    "Resolution",
    "Session",
    "Store",
    "agreement",
    "open_items",
    "resolve",
]
