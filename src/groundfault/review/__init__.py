"""Blind human review: items that show nothing else, decisions that are only added, resolved and
measured.

An item is named by the hash of what it shows, so whoever knows its id knows no more than a reviewer
does. A decision is written down before the next item is shown, is never changed, and the last one
of a reviewer counts."""

from __future__ import annotations

from groundfault.review.decision import Decision
from groundfault.review.item import Item
from groundfault.review.measuring import agreement
from groundfault.review.queue import Queue, open_items
from groundfault.review.resolving import Resolution, resolve
from groundfault.review.session import Session
from groundfault.review.store import Store

__all__ = [
    "Decision",
    "Item",
    "Queue",
    "Resolution",
    "Session",
    "Store",
    "agreement",
    "open_items",
    "resolve",
]
