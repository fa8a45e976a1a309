"""Items: what a reviewer sees of a response, and nothing else."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field, fields
from functools import cached_property

from groundfault.base.deprecation import rename_members

_HALVES = re.compile("[\ud800-\udfff]")


@rename_members(shown="visible_texts")
@dataclass(frozen=True)
class Item:
    """One response to review.

    Attributes
    ----------
    task : str
        Its id.
    prompt : str
        What the model was asked.
    answer : str
        What was expected.
    extracted : str or None
        What a machine read as the answer; None where it read none.
    response : str
        All that the model said.
    copy : int
        From 1: which of several equal responses this is, where each is reviewed for itself.
    question : str
        The task's canonical wording. The task names it, so it is no part of the id.

    Notes
    -----
    Texts are kept as a sheet gives them back: line ends are ``\\n``, and half a surrogate pair,
    which is no text, is U+FFFD.

    Examples
    --------
    >>> item = Item("eggs", "How long do 3 eggs take?", "6", "18", "Answer: 18")
    >>> item.id == Item("eggs", "How long do 3 eggs take?", "6", "18", "Answer: 18").id
    True
    """

    task: str
    prompt: str
    answer: str
    extracted: str | None
    response: str
    copy: int = 1
    question: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, str):
                object.__setattr__(self, each.name, normalize(value))

    @cached_property
    def id(self) -> str:
        """SHA-256 of what is shown."""
        content = [self.task, self.prompt, self.answer, self.extracted, self.response, self.copy]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    @property
    def visible_texts(self) -> dict[str, str]:
        """What a sheet shows, in reading order; an answer that was not read is empty."""
        texts = {
            name: getattr(self, name)
            for name in ("task", "question", "prompt", "answer", "extracted", "response")
        }
        return {**{name: text or "" for name, text in texts.items()}, "copy": str(self.copy)}


def normalize(text: str) -> str:
    """Text with line ends and characters that every kind of sheet gives back as they were."""
    return _HALVES.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))
