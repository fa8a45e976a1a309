"""Descriptions by a language model where the truth is planted: annotators that err, and no truth.

Examples have properties that stand in their texts. Who proposes reads a question as a language
model would, and names the properties that tell the failed items it is shown from the passed ones
best; who annotates reads the text, and errs at a rate of its own. Everything between them is what
`groundfault.describe` and an audit do."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import groundfault
from groundfault import Evidence, Plan
from groundfault.auditing.preparation import prepare
from groundfault.base.long_work import Progress, listener
from groundfault.core.finding import Verdict
from groundfault.descriptions.proposing import ProposingSettings
from groundfault.models import Question, Response
from groundfault.stats.intervals import wilson
from groundfault_studies.resuming import Rows, gather_rows
from groundfault_studies.tables import Kind, PaperRow, PaperStudy, PaperTable, Value

SOURCE = "worlds with a property that fails, or none; scripted models that read prompts"
ERRORS = (0.0, 0.1, 0.2, 0.3)
"""Error rates of annotators, of either kind."""
_NULL_ERROR = 0.1
LEVEL = 0.1
"""Of the audits: family-wise, over all descriptions of all arms."""

_EXAMPLES, _PROPERTIES, _SHARE = 300, 16, 0.3
_BASE, _LIFT = 0.2, 0.35
_SETTINGS = ProposingSettings(rounds=2, examples=15, count=4)
_CHECK = 50
_REPLICATES, _BATCH = 200, 20
_PLANTED = "the item has property p0"
_ITEM = re.compile(r"^<<<(\w+) task \d+>>>\n(.*?)\n<<<\1 end>>>$", re.S | re.M)


@dataclass(frozen=True)
class ErringModel:
    """Proposes what the examples it is shown suggest; decides as the text says, with errors.

    Attributes
    ----------
    name : str
        Two names err independently.
    error : float
        Chance of a wrong decision, in [0, 1].
    """

    name: str
    error: float

    async def answer(self, question: Question) -> Response:
        """The reply that a prompt asks for."""
        prompt = question.messages[0]["content"]
        items = [text.split() for _, text in _ITEM.findall(prompt)]
        if "Reply with one JSON object and nothing else, with at most" in prompt:
            return Response(json.dumps({"descriptions": self._propose(prompt, items)}))
        statements = re.findall(r"^(\d+)\. (.*)$", prompt, re.M)
        decisions = {
            number: "yes" if self._decide(items[0], text) else "no" for number, text in statements
        }
        return Response(json.dumps(decisions))

    def _propose(self, prompt: str, items: list[list[str]]) -> list[str]:
        """Properties that tell failed items from passed ones; of a blind question, any."""
        span = re.search(r"failed on items 1 to (\d+)", prompt)
        first = int(span[1]) if span else 0
        names = [f"p{i}" for i in range(_PROPERTIES)]
        shares = {
            name: sum(name in item for item in items[:first]) / max(first, 1)
            - sum(name in item for item in items[first:]) / max(len(items) - first, 1)
            for name in names
        }
        # ties and blind questions are settled by the prompt, as a model's moods are
        order = sorted(names, key=lambda name: (-shares[name] * bool(first), _mix(prompt, name)))
        return [f"the item has property {name}" for name in order[: _SETTINGS.count]]

    def _decide(self, item: list[str], statement: str) -> bool:
        errs = _mix(self.name, " ".join(item), statement) < self.error
        return (statement.split()[-1] in item) != errs


def study(
    *,
    replicates: int | None = None,
    quick: bool = False,
    jobs: int = 1,
    stored: bool = False,
    keep: str | Path | None = None,
    progress: Progress | None = None,
) -> PaperStudy:
    """Measure power and false findings of descriptions, by the error rate of their annotator.

    Parameters
    ----------
    replicates : int, optional
        Audits without a truth, and half as many of each error rate with one; left out, 200, or
        quickly 20.
    quick : bool
    jobs : int
        Processes; the answer does not depend on it.
    stored : bool
        Run nothing: show what ``keep`` holds.
    keep : path, optional
        File of what is done, to go on from.
    progress : callable, optional
    """
    count = replicates or (_BATCH if quick else _REPLICATES)
    settings = [(0.0, _NULL_ERROR, count), *((_LIFT, error, -(-count // 2)) for error in ERRORS)]
    todo = {
        f"{_EXAMPLES} examples, lift {lift}, error {error}, from {start}": (
            lift,
            error,
            start,
            min(_BATCH, audits - start),
        )
        for lift, error, audits in settings
        for start in range(0, audits, _BATCH)
    }
    rows = gather_rows(todo, measure, keep, jobs, listener(progress), stored=stored)
    planted = [row for row in rows if row["lift"]]
    return PaperStudy(
        "descriptions",
        "Descriptions by a language model, and annotators that err",
        SOURCE,
        {"replicates": count, "examples": _EXAMPLES, "lift": _LIFT},
        (_make_power_table(planted), _make_null_table([row for row in rows if not row["lift"]])),
    )


def measure(lift: float, error: float, start: int, count: int) -> Rows:
    """A row for each audit: what was proposed and confirmed in it, and how annotators agreed."""
    return [run_audit(lift, error, seed) for seed in range(start, start + count)]


def run_audit(lift: float, error: float, seed: int) -> dict[str, Any]:
    """Describe and judge one world.

    Parameters
    ----------
    lift : float
        Of the failure rate of examples that have the planted property; 0 for no truth at all.
    error : float
        Chance of a wrong decision.
    seed : int

    Returns
    -------
    dict
        Whether the planted description was proposed from outcomes, confirmed, and with which
        held-out lift; whether a false one was confirmed, in all and by arm; the share of decisions
        on which a second annotator agrees.
    """
    evidence = draw_world(lift, seed)
    model, second = ErringModel("first", error), ErringModel("second", error)
    plan = Plan(seed=seed)
    descriptions = groundfault.describe(
        evidence, model, plan, second=second, settings=_SETTINGS, check=_CHECK, concurrency=1
    )
    audit = prepare(evidence, plan, descriptions.library)
    ruling, _, holdout = audit.judge_losses(audit.losses())
    assert holdout is not None
    confirmed = {place for place, v in enumerate(ruling.verdicts) if v is Verdict.CONFIRMED}
    arms = [set(column.description.arms) for column in descriptions.rows]
    true = {j for j, c in enumerate(descriptions.library) if c.meaning == _PLANTED and lift}
    from_outcomes = {j for j in true if "outcomes" in arms[j]}
    false = confirmed - true
    checks = [one.agreement for one in descriptions.rows if one.agreement is not None]
    return {
        "lift": lift,
        "error": error,
        "proposed": bool(from_outcomes),
        "confirmed": bool(from_outcomes & confirmed),
        "size": float(holdout.tables.lift[min(true)]) if true else None,
        "false": bool(false),
        **{f"false_{arm}": any(arm in arms[j] for j in false) for arm in _SETTINGS.arms},
        "agreement": sum(one.agreed for one in checks) / sum(one.checked for one in checks),
    }


def draw_world(lift: float, seed: int) -> Evidence:
    """Examples whose texts name their properties; they fail more often where they have the first.

    Parameters
    ----------
    lift : float
    seed : int
    """
    rng = np.random.default_rng([seed, 20])
    has = rng.random((_EXAMPLES, _PROPERTIES)) < _SHARE
    texts = [
        f"item {i} is " + " ".join(f"p{j}" for j in np.flatnonzero(row))
        for i, row in enumerate(has)
    ]
    # where nothing is planted the base rate is that of the other worlds
    rate = _BASE + lift * has[:, 0] + (_LIFT - lift) * _SHARE
    table = pl.DataFrame(
        {
            "id": [f"e{i}" for i in range(_EXAMPLES)],
            "prompt": texts,
            "error": rng.random(_EXAMPLES) < rate,
        }
    )
    return Evidence.from_table(table, id="id", outcome="error")


def _make_power_table(rows: Rows) -> PaperTable:
    columns: dict[str, tuple[str, Kind]] = {
        "agreement": ("second annotator agrees", "rate"),
        "proposed": ("proposed from outcomes", "rate"),
        "confirmed": ("of these confirmed", "rate"),
        "size": ("held-out lift", "lift"),
        "false": ("audits with a false finding", "rate"),
        "interval": ("95 % interval", "text"),
        "audits": ("audits", "count"),
    }

    def summarize(part: Rows) -> dict[str, Value]:
        proposed = [row for row in part if row["proposed"]]
        sizes = [row["size"] for row in part if row["size"] is not None]
        return {
            "agreement": _mean(part, "agreement"),
            "proposed": _mean(part, "proposed"),
            "confirmed": _mean(proposed, "confirmed") if proposed else None,
            "size": float(np.mean(sizes)) if sizes else None,
            "false": _mean(part, "false"),
            "interval": _interval(part, "false"),
            "audits": len(part),
        }

    return PaperTable(
        f"A property of {_SHARE:.0%} of {_EXAMPLES} examples that fail {_LIFT:.0%} more often",
        "By the chance that the annotator decides wrongly. Every description but the planted one "
        f"is false; the level is {LEVEL:.0%}, over all descriptions of the three arms. Half of the "
        "examples are held out.",
        columns,
        _group(rows, summarize),
    )


def _make_null_table(rows: Rows) -> PaperTable:
    arms = ("false", *(f"false_{arm}" for arm in _SETTINGS.arms))
    heads = ("any", *(f"from {arm}" for arm in _SETTINGS.arms))
    columns: dict[str, tuple[str, Kind]] = {
        **{key: (head, "rate") for key, head in zip(arms, heads, strict=True)},
        "interval": ("95 % interval of any", "text"),
        "audits": ("audits", "count"),
    }

    def summarize(part: Rows) -> dict[str, Value]:
        return {
            **{key: _mean(part, key) for key in arms},
            "interval": _interval(part, "false"),
            "audits": len(part),
        }

    return PaperTable(
        "Audits that confirm a description where nothing fails more often",
        f"By the chance that the annotator decides wrongly. The level is {LEVEL:.0%} for any "
        "description, of whatever arm; one that two arms propose counts in both.",
        columns,
        _group(rows, summarize),
    )


def _group(rows: Rows, summarize: Callable[[Rows], Mapping[str, Value]]) -> tuple[PaperRow, ...]:
    errors = sorted({row["error"] for row in rows})
    return tuple(
        PaperRow(f"{error:.0%} wrong", summarize([row for row in rows if row["error"] == error]))
        for error in errors
    )


def _mean(rows: Rows, key: str) -> float:
    return float(np.mean([row[key] for row in rows]))


def _interval(rows: Rows, key: str) -> str:
    low, high = wilson(sum(row[key] for row in rows), len(rows))
    return f"{low:.1%} to {high:.1%}"


def _mix(*texts: str) -> float:
    """A number in [0, 1) that looks random, and is the same for the same texts."""
    digest = hashlib.sha256("\0".join(texts).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
