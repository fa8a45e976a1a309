"""Decisions: one reviewer's answers about one item, in the order of the three questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from groundfault.errors import InputError

Answer = Literal["yes", "no", "unsure"]
Artefact = Literal["extraction", "format"]
Role = Literal["reviewer", "adjudicator"]
Verdict = Literal[
    "invalid_prompt", "extraction_artifact", "format_artifact", "model_error", "no_error", "unsure"
]

ANSWERS: tuple[Answer, ...] = get_args(Answer)
ARTEFACTS: tuple[Artefact, ...] = get_args(Artefact)
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
SAID = ("prompt_valid", "extraction_valid", "artefact", "model_wrong", "note")

_MAX_NAME, _MAX_NOTE = 80, 4000


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A reviewer's answers about an item.

    A later question is moot after a "no" and may be left out: no answer to an invalid prompt is
    wrong, and a misread answer shows nothing about the model.

    Attributes
    ----------
    reviewer, item : str
        Who decides, and the item's id.
    prompt_valid : {"yes", "no", "unsure"}
        Does the prompt still ask the task?
    extraction_valid : {"yes", "no", "unsure"}, optional
        Is what was read the response's final answer?
    artefact : {"extraction", "format"}, optional
        Where it is not: was it misread, or is the form of the answer to blame?
    model_wrong : {"yes", "no", "unsure"}, optional
        Is the response's final answer wrong?
    note : str
    role : {"reviewer", "adjudicator"}
    time : str
        UTC, ISO 8601; the store's.
    seq : int
        Its place in the store; 0 before it is there.
    unblinded : bool
        Whether the hidden fields had been shown to somebody before; the store's.

    Raises
    ------
    InputError
        If an answer is none of these, one is missing that is not moot, or a name is not one.
    """

    reviewer: str
    item: str
    prompt_valid: Answer
    extraction_valid: Answer | None = None
    artefact: Artefact | None = None
    model_wrong: Answer | None = None
    note: str = ""
    role: Role = "reviewer"
    time: str = ""
    seq: int = 0
    unblinded: bool = False

    def __post_init__(self) -> None:
        for name in ("reviewer", "item", "note"):
            if not isinstance(getattr(self, name), str):
                raise InputError(f"{name} is {getattr(self, name)!r:.60}; it is text")
        check_name(self.reviewer)
        for name, choices in _ALLOWED.items():
            value = getattr(self, name)
            if value is not None and value not in choices:
                raise InputError(
                    f"{name} is {value!r}; it is {', '.join(choices[:-1])} or {choices[-1]}"
                )
        if self.prompt_valid is None:
            raise InputError(f"prompt_valid is missing; it is {', '.join(ANSWERS)}")
        if self.prompt_valid != "no":
            if self.extraction_valid is None:
                raise InputError(
                    "extraction_valid is missing; it may be left out only if prompt_valid is no"
                )
            if self.extraction_valid == "no" and self.artefact is None:
                raise InputError(
                    "artefact is missing: extraction_valid is no, so say whether extraction or "
                    "format"
                )
            if self.extraction_valid != "no" and self.model_wrong is None:
                raise InputError("model_wrong is missing; it may be left out only after a no")
        if self.artefact is not None and self.extraction_valid != "no":
            raise InputError(f"artefact is {self.artefact!r}, but extraction_valid is not no")
        if len(self.note) > _MAX_NOTE:
            raise InputError(
                f"the note has {len(self.note):,} characters; at most {_MAX_NOTE:,} are kept"
            )

    @property
    def verdict(self) -> Verdict:
        """What follows: the first question that is not answered in the item's favour decides."""
        if "unsure" in (self.prompt_valid, self.extraction_valid) and self.prompt_valid != "no":
            return "unsure"
        if self.prompt_valid == "no":
            return "invalid_prompt"
        if self.extraction_valid == "no":
            return "extraction_artifact" if self.artefact == "extraction" else "format_artifact"
        if self.model_wrong == "unsure":
            return "unsure"
        return "model_error" if self.model_wrong == "yes" else "no_error"

    def to_dict(self) -> dict[str, Any]:
        """As the store keeps it; time, place and blinding are the store's to add."""
        return {
            name: value
            for name, value in asdict(self).items()
            if name not in ("time", "seq", "unblinded")
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], **stored: Any) -> Decision:
        """What `to_dict` made."""
        return cls(**{name: data[name] for name in ("reviewer", "item", *SAID, "role")}, **stored)


_ALLOWED: dict[str, tuple[str, ...]] = {
    "prompt_valid": ANSWERS,
    "extraction_valid": ANSWERS,
    "artefact": ARTEFACTS,
    "model_wrong": ANSWERS,
    "role": get_args(Role),
}


def check_name(reviewer: str) -> str:
    """The name of a reviewer, or `InputError`."""
    if (
        not reviewer.strip()
        or reviewer != reviewer.strip()
        or len(reviewer) > _MAX_NAME
        or not reviewer.isprintable()
    ):
        raise InputError(
            f"a reviewer has a name of at most {_MAX_NAME} printable characters, "
            f"not {reviewer[:100]!r}"
        )
    return reviewer


def select_latest(decisions: Iterable[Decision]) -> dict[tuple[str, str, Role], Decision]:
    """The last decision of each reviewer on each item in each role, by place, then by time."""
    last: dict[tuple[str, str, Role], Decision] = {}
    for decision in decisions:
        key = (decision.item, decision.reviewer, decision.role)
        # a revision is a new event: history is kept, and the last word of a person counts
        if key not in last or _age(decision) >= _age(last[key]):
            last[key] = decision
    return last


def select_changes(decisions: Iterable[Decision], earlier: Iterable[Decision]) -> list[Decision]:
    """The decisions that are not, word for word, what the same person decided last."""
    standing = select_latest(earlier)
    return [
        decision
        for decision in decisions
        if (last := standing.get((decision.item, decision.reviewer, decision.role))) is None
        or last.to_dict() != decision.to_dict()
    ]


def _age(decision: Decision) -> tuple[int, str]:
    return decision.seq, decision.time
