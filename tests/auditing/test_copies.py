"""Copies under new ids count once; rows that merely look alike stay what they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from groundfault import Candidate, Evidence, Plan, audit
from groundfault.auditing.preparation import join_copies, prepare, take_each_for_a_unit
from groundfault.auditing.prepared_audit import tabulate_units
from groundfault.core.roles import Roles
from groundfault.core.units import average_losses

FLAGS = [f"c{j}" for j in range(10)]


def make_table(n: int, seed: int, kind: str = "flags") -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    columns = {
        "flags": {name: rng.random(n) < 0.4 for name in FLAGS},
        "few": {"lang": rng.choice(["de", "en"], n), "words": rng.integers(1, 60, n)},
        "numbers": {
            "words": rng.integers(1, 400, n),
            "share": rng.random(n).round(3),
            "lang": rng.choice(["de", "en", "fr"], n),
        },
    }[kind]
    return pl.DataFrame({**columns, "error": (rng.random(n) < 0.3).astype(int)})


def copy_rows(table: pl.DataFrame, times: int, share: float = 1.0, seed: int = 0) -> Evidence:
    rng = np.random.default_rng(seed)
    copies = [table[np.flatnonzero(rng.random(table.height) < share)] for _ in range(times - 1)]
    whole = pl.concat([table, *copies])
    whole = whole[rng.permutation(whole.height)]
    ids = pl.Series([f"q{i:05d}" for i in range(whole.height)])
    return Evidence.from_table(whole.with_columns(id=ids), id="id", outcome="error")


@pytest.mark.parametrize("kind", ["flags", "few", "numbers"])
@pytest.mark.parametrize("times", [2, 4])
def test_a_table_put_together_from_copies_of_itself_counts_once(kind: str, times: int) -> None:
    table = make_table(300, 1, kind)
    joined = join_copies(copy_rows(table, times))
    assert joined.unit_count == 300
    # outcomes of copies agree, so that the units keep errors of 0 and 1
    assert sorted(average_losses(joined)[0]) == sorted(table["error"].cast(float))
    assert prepare(joined, Plan(judge="holm")).strata is None


@pytest.mark.parametrize("kind", ["flags", "few", "numbers"])
def test_rows_that_look_alike_by_chance_stay_units(kind: str) -> None:
    evidence = copy_rows(make_table(600, 2, kind), 1)
    assert join_copies(evidence) is evidence


def test_copies_of_some_rows_are_seen_where_columns_tell_rows_apart() -> None:
    assert join_copies(copy_rows(make_table(600, 3, "numbers"), 2, 0.3)).unit_count == 600


def test_a_group_column_overrules() -> None:
    evidence = copy_rows(make_table(100, 1), 2)
    own = evidence.with_roles(with_group(evidence))
    assert join_copies(own) is own


def test_nothing_is_confirmed_more_often_for_copies() -> None:
    """Every row four times: without joining, more than half of such audits confirm something."""
    candidates = [Candidate(name, name) for name in FLAGS]
    confirmed = 0
    for seed in range(30):
        evidence = copy_rows(make_table(150, 100 + seed), 4, seed=seed)
        plan = Plan(judge="holm", seed=seed)
        prepared = prepare(evidence, plan, candidates)
        ruling, _, _ = prepared.judge_losses(prepared.losses())
        confirmed += "confirmed" in ruling.verdicts
    assert confirmed <= 7


def write_texts(n: int) -> list[str]:
    rng = np.random.default_rng(5)
    words = [f"{a}{b}" for a in ("ka", "lo", "mi", "ru", "ta") for b in ("ber", "den", "fin")]
    return [" ".join(rng.choice(words, 30)) for _ in range(n)]


def make_texts(texts: list[str], **columns: object) -> Evidence:
    n = len(texts)
    error = np.random.default_rng(6).integers(0, 2, n)
    table = pl.DataFrame({"id": np.arange(n), "error": error, "text": texts, **columns})
    return Evidence.from_table(table, id="id", outcome="error")


def test_texts_that_differ_by_form_or_by_little_are_copies() -> None:
    texts = write_texts(100)
    words = np.array([len(text.split()) for text in texts] * 2)
    forms = [f"  {text.upper()}!" for text in texts[:50]]
    near = [f"{text[:-1]}x" for text in texts[50:]]
    joined = join_copies(make_texts([*texts, *forms, *near], words=words + np.arange(200) % 3))
    assert joined.unit_count == 100
    # described by the first of them, also where others differ
    table, varying = tabulate_units(joined, ["words"])
    assert varying == ()
    assert len(table) == 100
    audited = audit(
        joined, Plan(judge="holm"), [Candidate("long", "words > 30")], modes=False, ledger=False
    )
    assert audited.findings[0].full.on + audited.findings[0].full.off == 100
    assert audited.hints[0].startswith("100 of 200 examples repeat another one")
    # a case takes --group only when it is begun
    assert audited.hints[0].endswith(
        "if they are no copies, add --group id (of a case, to case new)"
    )


def test_other_labels_other_numbers_and_other_answers() -> None:
    texts = [f"{text} {i}" for i, text in enumerate(write_texts(80))]
    lang = ["de", "en"] * 40
    variants = make_texts(texts * 2, lang=lang + lang[::-1])
    assert join_copies(variants) is variants
    numbers = make_texts([*texts, *(f"{text}7" for text in texts)])
    assert join_copies(numbers) is numbers
    answers = [f"that is {i}, said the model in so many words" for i in range(160)]
    assert join_copies(make_texts(texts * 2, model_answer=answers)).unit_count == 80


def test_codes_are_no_texts() -> None:
    """Questions about one passage share its code, and are no copies of each other."""
    rng = np.random.default_rng(8)
    passages = [f"p{i:03d}" for i in range(100) for _ in range(3)]
    table = pl.DataFrame(
        {
            "id": [f"q{i:03d}" for i in range(300)],
            "passage": passages,
            "words": np.repeat(rng.integers(50, 800, 100), 3),
            "table": rng.random(300) < 0.35,
            "error": (rng.random(300) < 0.3).astype(int),
        }
    )
    evidence = Evidence.from_table(table, id="id", outcome="error")
    assert join_copies(evidence) is evidence


def test_failure_modes_see_clusters() -> None:
    table = make_table(200, 7).with_columns(
        error=(pl.col("c0") & (pl.int_range(200) % 10 > 0)).cast(int)
    )
    once = audit(copy_rows(table, 1), Plan(judge="holm"), ledger=False)
    thrice = audit(copy_rows(table, 3), Plan(judge="holm"), ledger=False)
    assert [mode.rule for mode in thrice.modes] == [mode.rule for mode in once.modes]
    assert thrice.modes[0].n == once.modes[0].n
    assert thrice.modes[0].p_marginal == pytest.approx(once.modes[0].p_marginal)


def test_each_can_be_taken_for_a_unit() -> None:
    """As reports of 0.1 did, which are verified that way."""
    evidence = take_each_for_a_unit(copy_rows(make_table(100, 1), 2))
    assert join_copies(evidence) is evidence
    assert evidence.unit_count == 200
    plain, same = (
        prepare(one, Plan(judge="holm")).losses()
        for one in (evidence.without_clusters().with_roles(with_group(evidence)), evidence)
    )
    np.testing.assert_array_equal(plain, same)
    report = audit(evidence, Plan(judge="holm"), modes=False, ledger=False)
    assert not any("repeat another one" in hint for hint in report.hints)


def with_group(evidence: Evidence) -> Roles:
    return replace(evidence.roles, group=evidence.roles.id)
