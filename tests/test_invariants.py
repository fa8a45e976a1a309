"""Laws that audits obey whatever the data: order, names, complements and duplicates do not
matter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from profiles import count_examples

import groundfault
from groundfault import Candidate, Plan

JUDGES = (
    "janus",
    "janus-a",
    "janus-lite",
    "split-holm",
    "holm",
    "bh",
    "by",
    "max-t",
    "multisplit-e",
)
CANDIDATES = [Candidate(f"c{j}", f"c{j}") for j in range(4)] + [
    Candidate("long", "words > 5"),
    Candidate("de", "lang = 'de'"),
]


@st.composite
def tables(draw: st.DrawFn) -> pl.DataFrame:
    seed = draw(st.integers(0, 2**32 - 1))
    n = draw(st.integers(40, 120))
    effect = draw(st.sampled_from([0.0, 0.3, 0.6]))
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {
        f"c{j}": rng.random(n) < draw(st.sampled_from([0.2, 0.5])) for j in range(4)
    }
    error = rng.random(n) < 0.3 + effect * columns["c0"]
    error[:2] = [True, False]
    return pl.DataFrame(
        {
            "id": [f"item {i}" for i in range(n)],
            "error": error,
            "words": rng.integers(0, 12, n),
            "lang": rng.choice(["de", "en", "fr"], n),
            **columns,
        }
    )


def audit(
    frame: pl.DataFrame,
    judge: str,
    candidates: list[Candidate],
    *,
    modes: bool = False,
    **more: Any,
) -> groundfault.Report:
    evidence = groundfault.Evidence.from_table(frame, id="id", outcome="error", **more)
    plan = Plan(judge=judge, permutations=99, splits=5, seed=3)
    return groundfault.audit(evidence, plan, candidates, modes=modes)


def verdicts(report: groundfault.Report) -> dict[str, tuple[str, float | None]]:
    return {f.name: (str(f.verdict), f.discovery.lift) for f in report.findings}


any_judge = pytest.mark.parametrize("judge", JUDGES)
few = settings(max_examples=count_examples(30, 3), deadline=None)


@any_judge
@few
@given(frame=tables(), seed=st.integers(0, 1000))
def test_row_order_changes_nothing(judge: str, frame: pl.DataFrame, seed: int) -> None:
    shuffled = frame.sample(fraction=1, shuffle=True, seed=seed)
    # failure modes depend on no judge: they are looked for beside one
    one, other = (
        audit(table, judge, CANDIDATES, modes=judge == "max-t") for table in (frame, shuffled)
    )
    assert one.to_json() == other.to_json()


@pytest.mark.parametrize("judge", [j for j in JUDGES if j != "max-t"])
@few
@given(frame=tables())
def test_candidate_order_changes_no_verdict(judge: str, frame: pl.DataFrame) -> None:
    assert verdicts(audit(frame, judge, CANDIDATES)) == verdicts(
        audit(frame, judge, CANDIDATES[::-1])
    )


@any_judge
@few
@given(frame=tables())
def test_names_change_nothing(judge: str, frame: pl.DataFrame) -> None:
    renamed = [Candidate(f"another {c.name}", c.rule) for c in CANDIDATES]
    before, after = (
        verdicts(audit(frame, judge, CANDIDATES)),
        verdicts(audit(frame, judge, renamed)),
    )
    assert before == {name.removeprefix("another "): verdict for name, verdict in after.items()}


@any_judge
@few
@given(frame=tables())
def test_a_complement_flips_the_sign(judge: str, frame: pl.DataFrame) -> None:
    flipped = [Candidate(c.name, f"NOT ({c.rule})") for c in CANDIDATES]
    before, after = (
        verdicts(audit(frame, judge, CANDIDATES)),
        verdicts(audit(frame, judge, flipped)),
    )
    assert before.keys() == after.keys()
    for name, (verdict, lift) in before.items():
        assert after[name] == (verdict, None if lift is None else -lift)


@pytest.mark.parametrize("judge", [j for j in JUDGES if j not in ("janus-a", "janus-lite")])
@few
@given(
    frame=tables(),
    again=st.lists(st.integers(0, 5), min_size=1, max_size=6),
    opposite=st.booleans(),
)
def test_duplicates_and_complements_change_nothing(
    judge: str, frame: pl.DataFrame, again: list[int], opposite: bool
) -> None:
    more = [
        Candidate(
            f"again {i}", f"NOT ({CANDIDATES[j].rule})" if opposite else f"({CANDIDATES[j].rule})"
        )
        for i, j in enumerate(again)
    ]
    before, report = (
        verdicts(audit(frame, judge, CANDIDATES)),
        audit(frame, judge, [*CANDIDATES, *more]),
    )
    after = verdicts(report)
    assert before == {name: after[name] for name in before}
    for i, j in enumerate(again):
        name = CANDIDATES[j].name
        assert after[f"again {i}"][0] == before[name][0]
        lead = next(f for f in report.findings if f.name == name)
        assert f"{'not ' if opposite else ''}again {i}" in lead.aliases


@few
@given(frame=tables())
def test_the_words_for_an_error_change_nothing(frame: pl.DataFrame) -> None:
    number = audit(frame.with_columns(pl.col("error").cast(pl.Int8)), "janus", CANDIDATES)
    correct = audit(
        frame.with_columns(~pl.col("error")), "janus", CANDIDATES, positive_is_good=True
    )
    assert verdicts(audit(frame, "janus", CANDIDATES)) == verdicts(number) == verdicts(correct)


@few
@given(frame=tables(), seed=st.integers(0, 99))
def test_the_content_hash_is_of_the_content(frame: pl.DataFrame, seed: int) -> None:
    def hashed(frame: pl.DataFrame) -> str:
        return groundfault.Evidence.from_table(frame, id="id", outcome="error").hash

    assert hashed(frame) == hashed(
        frame.sample(fraction=1, shuffle=True, seed=seed).select(sorted(frame.columns))
    )
    row = seed % frame.height
    changed = frame.with_columns(
        pl.when(pl.int_range(pl.len()) == row).then(99).otherwise("words").alias("words")
    )
    assert hashed(frame) != hashed(changed)
