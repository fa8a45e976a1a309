"""Describing: recorded answers become candidates that are judged, on held-out units or on all."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from describing_models import QUESTIONS, DescribingModel, make_written_model, read_arm

import groundfault
from groundfault import Candidate, Descriptions, Evidence, Plan, Report
from groundfault.auditing.describing import DescribingTask
from groundfault.descriptions import ProposingSettings
from groundfault.errors import InputError, PlanError
from groundfault.models import Question, Record, Response
from groundfault.render import to_html as html, to_markdown as markdown
from groundfault.render.audit_page import make_summary
from groundfault.render.terminal import show

UNITS = "the question asks to convert one unit into another"
TWO_ROUNDS = ProposingSettings(rounds=2)


def read_questions() -> Evidence:
    return Evidence.from_table(QUESTIONS, id="id", outcome="error")


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Answers written for these tests, as a record of calls."""
    place = tmp_path_factory.mktemp("record") / "calls.db"
    model = make_written_model()
    groundfault.describe(
        read_questions(),
        model,
        second=model,
        check=30,
        settings=TWO_ROUNDS,
        record=place,
        concurrency=64,  # calls that end together are one transaction
    )
    Record(place).to_jsonl(place.with_suffix(".jsonl"))
    return place


def replay(record: Path, **settings: Any) -> Descriptions:
    target = f"replay:{record.with_suffix('.jsonl')}"
    options = {"second": target, "check": 30, "settings": TWO_ROUNDS, **settings}
    return groundfault.describe(read_questions(), target, **options)


@pytest.fixture(scope="module")
def report(record: Path) -> Report:
    library = replay(record).library
    return groundfault.audit(read_questions(), candidates=library, ledger=False)


def test_recorded_answers_become_candidates_that_know_their_origin(record: Path) -> None:
    descriptions = replay(record)
    assert {c.meaning: c.source for c in descriptions.library} == {
        UNITS: "described (outcomes)",
        "the question names a person": "described (outcomes, shuffled)",
        "the question mentions food or drink": "described (outcomes, blind)",
        "the question is about more than one day": "described (blind, shuffled)",
    }
    mined = {c.meaning for c in descriptions.library if c.mined}
    assert mined == {UNITS, "the question names a person"}
    assert descriptions.columns == ("question",)
    assert descriptions.examples == 96
    assert descriptions.proposals == {arm: {"read": 2} for arm in TWO_ROUNDS.arms}
    agreements = [column.agreement for column in descriptions.rows]
    assert all(one is not None and one.checked == one.agreed == 30 for one in agreements)


def test_descriptions_are_judged_on_held_out_units_and_listed_as_modes(report: Report) -> None:
    assert report.judge == "split-holm"
    [mode] = report.modes
    assert mode.meaning == UNITS
    assert mode.n < 0.6 * 32  # of the held-out half alone
    by_name = {finding.meaning: finding for finding in report.findings}
    assert by_name[UNITS].confirmed
    assert not by_name["the question names a person"].confirmed


def test_a_report_shows_arms_and_agreement(report: Report) -> None:
    from rich.console import Console

    console = Console(record=True, width=120)
    show(make_summary(report, why=True), console)
    for text in (html(report), markdown(report), console.export_text()):
        line = " ".join(text.split())
        assert "1 of 3 from examples with their outcomes" in line
        assert "0 of 2 from shuffled outcomes (control)" in line
        assert "asked again agrees on 30 of 30" in line
        assert "was 'described" not in line
    assert "of the discovery part are tested on the held-out examples alone" in markdown(report)


@pytest.mark.slow
def test_a_report_is_verified_without_any_model(record: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    library = replay(record).library
    report = groundfault.audit(read_questions(), candidates=library, ledger=ledger)
    report.write(tmp_path / "report")
    verification = groundfault.verify(tmp_path / "report", ledger=ledger)
    assert verification.verdict == "reproduces"
    assert Report.load(tmp_path / "report").library == library


def test_blind_and_named_descriptions_are_tested_on_all_units(record: Path) -> None:
    model = make_written_model()
    blind = ProposingSettings(("blind",), rounds=2)
    descriptions = groundfault.describe(
        read_questions(), model, descriptions=[UNITS], settings=blind
    )
    assert not any(c.mined for c in descriptions.library)
    assert {c.meaning: c.source for c in descriptions.library}[UNITS] == "described (named)"
    report = groundfault.audit(read_questions(), candidates=descriptions.library, ledger=False)
    assert (report.judge, report.n_holdout) == ("max-t", 0)
    assert UNITS in {finding.meaning for finding in report.confirmed}
    text = " ".join(markdown(report).split())
    assert "and not outcomes. " in text
    assert "named by you, owes nothing to outcomes" in text


def test_a_split_that_saw_the_holdout_is_refused(record: Path) -> None:
    library = replay(record).library
    with pytest.raises(PlanError, match="was mined from units of this evidence"):
        groundfault.audit(read_questions(), Plan(seed=1), library, ledger=False)


def test_no_prompt_holds_a_held_out_example_an_answer_or_an_outcome() -> None:
    table = pl.read_csv(QUESTIONS).with_columns(
        answer=pl.format("SECRET {}", "id"), feedback=pl.lit("SECRET"), split=pl.lit("discovery")
    )
    held_out = pl.int_range(pl.len()) % 2 == 0
    table = table.with_columns(split=pl.when(held_out).then(pl.lit("holdout")).otherwise("split"))
    evidence = Evidence.from_table(table, id="id", outcome="error", split="split")
    model = make_written_model()
    groundfault.describe(evidence, model, settings=TWO_ROUNDS)
    unseen = table.filter(held_out)["question"].to_list()
    for prompt in model.prompts:
        assert "SECRET" not in prompt
        if read_arm(prompt):
            assert not any(text in prompt for text in unseen)
    with pytest.raises(InputError, match=r"'answer'.*describes the answer or its score"):
        groundfault.describe(evidence, model, columns=["answer"])


def test_annotations_do_not_depend_on_outcomes() -> None:
    table = pl.read_csv(QUESTIONS)
    prompts = []
    for outcome in (table["error"], 1 - table["error"]):
        evidence = Evidence.from_table(table.with_columns(error=outcome), id="id", outcome="error")
        model = DescribingModel(lambda _: '{"descriptions": ["it is x"]}', lambda *_: True)
        groundfault.describe(evidence, model)
        prompts.append([prompt for prompt in model.prompts if not read_arm(prompt)])
    assert prompts[0] == prompts[1]


def test_a_sample_leaves_the_other_examples_out(record: Path) -> None:
    descriptions = replay(record, sample=60)
    assert descriptions.examples == 60
    library = descriptions.library
    report = groundfault.audit(read_questions(), candidates=library, ledger=False, modes=False)
    assert {finding.full.on + finding.full.off for finding in report.findings} == {60}


def test_a_person_may_decide_again(record: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    before = replay(record, second=None, sheet=sheet, check=8)
    assert not any(column.agreement for column in before.rows)
    text = sheet.read_text(encoding="utf-8-sig")
    assert text.count("\n") == 1 + 8 * 4
    sheet.write_text(text.replace(f'{UNITS},""', f"{UNITS},yes"))
    after = replay(record, second=None, sheet=sheet, check=8)
    # a check that comes later leaves the candidates, and so what is sealed, the same
    assert after.library.hash == before.library.hash
    checks = {column.description.text: column.agreement for column in after.rows}
    by_person = checks.pop(UNITS)
    assert by_person is not None
    assert (by_person.annotator, by_person.checked) == ("a person", 8)
    assert by_person.agreed < 8
    assert all(one is not None and one.checked == 0 for one in checks.values())
    with pytest.raises(PlanError, match="not both"):
        replay(record, sheet=sheet)
    sheet.write_text("text,description,holds\nanother text,another,yes\n")
    model = make_written_model()
    with pytest.raises(InputError, match="differs from the written sheet"):
        groundfault.describe(read_questions(), model, sheet=sheet, settings=TWO_ROUNDS)
    assert len(model.prompts) == 6, "a sheet that cannot be read costs no annotation"


def test_costs_are_announced_before_they_are_spent(record: Path) -> None:
    said: list[str] = []
    with pytest.raises(PlanError, match=r"annotating 96 examples.*more than the 14 calls"):
        replay(record, max_calls=20, prices=(2.5, 10.0), announce=said.append)
    assert said[0].startswith("at most 258 calls, about ")
    assert ": 6 for proposals, then up to 2 for each of 96 examples, and for 30 of these" in said[0]
    assert "6 calls" in said[1]
    assert "about $" in said[1]
    assert len(said) == 2


def test_no_run_costs_more_than_its_bound() -> None:
    model, said = make_written_model(), list[str]()
    settings = {"settings": TWO_ROUNDS, "check": 30, "descriptions": ["It names a date.", UNITS]}
    bound = DescribingTask.of(read_questions(), **settings).bound_cost(second=True)
    descriptions = groundfault.describe(
        read_questions(), model, second=model, announce=said.append, **settings
    )
    numbers = [re.search(r"([\d,]+) calls?, about ([\d,]+) .*and ([\d,]+)", one) for one in said]
    spent = np.array([[int(n.replace(",", "")) for n in one.groups()] for one in numbers if one])
    assert len(spent) == 4
    parts = (bound.proposals, bound.annotations, bound.checks)
    most = [(one.calls, one.input_tokens, one.output_tokens) for one in parts]
    assert spent[0].tolist() == np.sum(most, axis=0).tolist()
    assert (spent[1:] <= most).all()
    # proposals are known to the last letter; not how many different ones come of them
    assert spent[1].tolist() == list(most[0])
    assert descriptions.calls <= spent[0, 0]


class Mute:
    """An annotator that never decides."""

    name = "mute"

    async def answer(self, question: Question) -> Response:
        return Response("I cannot say.")


def test_what_cannot_be_described() -> None:
    model = make_written_model()
    numbers = pl.DataFrame({"n": range(40), "error": [0, 1] * 20})
    evidence = Evidence.from_table(numbers, outcome="error")
    with pytest.raises(InputError, match=r"no column of prose.*--text.*among n"):
        groundfault.describe(evidence, model)
    empty = read_questions().frame.with_columns(question=pl.lit(None, pl.String))
    with pytest.raises(InputError, match=r"every example is empty in question: .*--text"):
        groundfault.describe(
            Evidence.from_table(empty, id="id", outcome="error"), model, columns=["question"]
        )
    with pytest.raises(InputError, match="no descriptions"):
        groundfault.describe(read_questions(), model, settings=ProposingSettings(()))
    with pytest.raises(PlanError, match="at least 1"):
        groundfault.describe(read_questions(), model, check=0)
    for price in (-1.0, float("nan"), float("inf")):
        with pytest.raises(PlanError, match="at least 0 dollars"):
            groundfault.describe(read_questions(), model, prices=(1.0, price))
    with pytest.raises(InputError, match=r"mute decided on no example \(\d+ unparsed\)"):
        groundfault.describe(read_questions(), model, annotator=Mute(), settings=TWO_ROUNDS)


def test_a_description_cannot_break_out_of_a_page() -> None:
    text = "<img src=x onerror=alert(1)> [a](javascript:b)"
    decide = make_written_model()._decide
    model = DescribingModel(
        lambda _: '{"descriptions": []}', lambda item, _: decide(item, UNITS), "<b>model</b>"
    )
    descriptions = groundfault.describe(read_questions(), model, second=model, descriptions=[text])
    report = groundfault.audit(read_questions(), candidates=descriptions.library, ledger=False)
    assert report.confirmed
    page = html(report)
    assert "<img" not in page
    assert "<b>model" not in page
    assert "&lt;img src=x" in page
    assert "&lt;img src=x" in markdown(report)


def test_descriptions_stand_beside_other_candidates(record: Path) -> None:
    library = [*replay(record).library, Candidate("pens", "question LIKE '%pens%'")]
    report = groundfault.audit(
        read_questions(), candidates=library, finders=["text"], ledger=False, modes=False
    )
    assert {"described (outcomes)", "declared", "text"} <= set(report.candidates.sources)
