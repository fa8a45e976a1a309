"""A case in other words: pairs of fresh tasks, a model that answers, people who review."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from groundfault import Case, Evidence, PlanError
from groundfault.case.probing import PLANNED, draw_pairs, make_bank
from groundfault.case.settings import ProbeChoice
from groundfault.case.verification import verify_case
from groundfault.case.wordings import judge_wordings
from groundfault.errors import InputError, LedgerError
from groundfault.models import Question, Response
from groundfault.probes.bank.bank import Bank, Task
from groundfault.probes.bank.grammar import ComponentGroup, Grammar, Option
from groundfault.review import Decision, Item

LAYOUT = "{start}\n\n{question}\n\n{end}"
GRAMMAR = Grammar(
    "two groups",
    (
        ComponentGroup("start", (Option("plain"), Option("please", "Please answer."))),
        ComponentGroup("end", (Option("plain"), Option("aside", "It is raining."))),
    ),
    LAYOUT,
)


def table(count: int = 200) -> pl.DataFrame:
    """Sums that a model gets wrong where they are put in German."""
    rng = np.random.default_rng(2)
    language = rng.choice(["de", "en", "fr", "it"], count)
    one, two = rng.integers(10, 90, (2, count))
    error = rng.random(count) < np.where(language == "de", 0.95, 0.04)
    prompts = [f"{w}: {a} + {b}?" for w, a, b in zip(language, one, two, strict=True)]
    columns = {"item": [f"q {i:03}" for i in range(count)], "lang": language, "size": one // 30}
    texts = {"prompt": prompts, "target": (one + two).astype(str)}
    return pl.DataFrame({**columns, **texts, "error": error.astype(int)})


@dataclass
class Sums:
    """Adds, but not in German, and outside of it wrongly after an aside."""

    name: str = "sums"
    asides: bool = True

    async def answer(self, question: Question) -> Response:
        prompt = question.messages[0]["content"]
        one, two = map(int, re.findall(r"\d+", prompt))
        wrong = "de:" in prompt or (self.asides and "raining" in prompt)
        return Response(f"Answer: {one + two + wrong}")


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A case with an audit and six labels."""
    place = tmp_path_factory.mktemp("wordings") / "case"
    evidence = Evidence.from_table(table(), outcome="error", id="item", ignore=["prompt", "target"])
    case = Case.create(place, evidence, seed=1)
    assert [mode.rule for mode in case.audit().modes] == ["\"lang\" = 'de'"]
    confirmation = case.confirm(budget=6)
    confirmation.run(case.look_up)
    return place


@pytest.fixture(scope="module")
def answered(audited: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with all answers in other words."""
    case = copy(audited, tmp_path_factory.mktemp("answered") / "case")
    case.probe(question="prompt", target="target", pairs=12, grammar=GRAMMAR)
    case.ask(Sums())
    case.write_confirmation()
    case.write_report()
    return case.folder


def copy(place: Path, to: Path) -> Case:
    shutil.copytree(place, to)
    return Case(to)


# ------------------------------------------------------------------------------------ --- the tasks


def test_pairs_are_alike_but_for_the_rule_and_nobody_saw_them(audited: Path) -> None:
    case = Case(audited)
    fresh = case.fresh_evidence
    labelled = {e.body["id"] for e in case.ledger.events("holdout_asked")}
    free = np.array([name not in labelled for name in fresh.unit_names])
    on = {1: case.mark_fresh_units([1])[0]}
    drawn = draw_pairs(fresh, on, {1: ("lang",)}, [1], free=free, most=9, seed=1)[1]
    rows = {row["item"]: row for row in fresh.frame.iter_rows(named=True)}
    assert len(labelled) == 6
    assert len({unit for pair in drawn for unit in pair}) == 18
    assert not labelled & {unit for pair in drawn for unit in pair}
    for one, two in drawn:
        assert rows[one]["lang"] == "de" != rows[two]["lang"]
        assert rows[one]["size"] == rows[two]["size"]
    assert draw_pairs(fresh, on, {1: ("lang",)}, [1], free=free, most=9, seed=1)[1] == drawn


def test_a_unit_serves_one_mode(audited: Path) -> None:
    fresh = Case(audited).fresh_evidence
    half = np.arange(fresh.unit_count) < 30
    free = np.ones(fresh.unit_count, dtype=bool)
    drawn = draw_pairs(
        fresh, {1: half, 2: half}, {1: (), 2: ()}, [1, 2], free=free, most=20, seed=0
    )
    units = [unit for pairs in drawn.values() for pair in pairs for unit in pair]
    assert [len(pairs) for pairs in drawn.values()] == [20, 10]
    assert len(set(units)) == len(units)


def test_the_bank_is_that_of_the_seed_whatever_is_labelled_later(answered: Path) -> None:
    case = Case(answered)
    choice = ProbeChoice.find(answered)
    assert choice is not None
    bank = Bank.load(answered / "probe/bank.toml")
    assert [task.family for task in bank][:2] == ["mode 1 inside", "mode 1 outside"]
    assert bank.hash == make_bank(case, (1,), 12, "prompt", "target").hash == choice.bank


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"modes": [2]}, "number from 1 to 1"),
        ({"pairs": 4}, "from 10 on a probe can show anything"),
        ({"question": "text"}, "no column 'text'"),
    ],
)
def test_what_is_no_probe(audited: Path, options: dict[str, object], message: str) -> None:
    settings = {"question": "prompt", "target": "target", **options}
    with pytest.raises((PlanError, InputError), match=message):
        Case(audited).probe(**settings)  # type: ignore[arg-type]
    assert not (audited / "probe.json").exists()
    assert not Case(audited).ledger.events(PLANNED)


def test_modes_to_confirm_are_chosen_before_fresh_tasks_are_asked(
    audited: Path, tmp_path: Path
) -> None:
    case = copy(audited, tmp_path / "case")
    (case.folder / "confirm.json").unlink()
    with pytest.raises(PlanError, match="choose the modes to confirm first"):
        case.probe(question="prompt", target="target")


def test_one_probe_of_one_model(answered: Path) -> None:
    case = Case(answered)
    with pytest.raises(PlanError, match="has one probe"):
        case.probe(question="prompt", target="target")
    with pytest.raises(PlanError, match="sums answered before, not another"):
        case.ask(Sums("another"))


# ---------------------------------------------------------------------------------- --- the answers


def test_a_probe_that_was_killed_before_its_file_goes_on_as_it_was_recorded(
    audited: Path, tmp_path: Path
) -> None:
    case = copy(audited, tmp_path / "case")
    begin = {"question": "prompt", "target": "target", "grammar": GRAMMAR}
    choice = case.probe(pairs=12, **begin)  # type: ignore[arg-type]
    (case.folder / "probe.json").unlink()
    for _ in range(2):
        with pytest.raises(PlanError, match="pairs 12, question prompt"):
            case.probe(pairs=11, **begin)  # type: ignore[arg-type]
    assert case.probe(pairs=12, **begin) == choice  # type: ignore[arg-type]
    assert verify_case(case.folder).verdict == "reproduces"


def test_a_group_of_one_row_is_asked_by_its_row(tmp_path: Path) -> None:
    frame = table().with_columns(pl.format("group of {}", "item").alias("group"))
    evidence = Evidence.from_table(
        frame, outcome="error", id="item", group="group", ignore=["prompt", "target"]
    )
    case = Case.create(tmp_path / "case", evidence, seed=1)
    case.audit()
    case.confirm(budget=1)
    case.probe(question="prompt", target="target", pairs=12, grammar=GRAMMAR)
    bank = Bank.load(case.folder / "probe/bank.toml")
    ids = pl.col("group").str.replace_all(" ", "-")
    questions = dict(frame.select(ids, "prompt").iter_rows())
    assert all(task.question == questions[task.id] for task in bank)


def test_a_mode_holds_in_other_words_and_asides_are_seen_outside_it(answered: Path) -> None:
    wordings = Case(answered).summarize().wordings
    assert wordings is not None
    assert (wordings.tasks, wordings.prompts, wordings.asked) == (24, 96, 96)
    (mode,) = wordings.judged
    assert (mode.pairs, mode.rate, mode.rate_outside) == (12, 1.0, 0.5)
    assert mode.holds
    effects = {(e.side, e.option): (e.difference, e.differs) for e in mode.effects}
    assert effects == {
        ("inside", "please"): (0.0, False),
        ("inside", "aside"): (0.0, False),
        ("outside", "please"): (0.0, False),
        ("outside", "aside"): (1.0, True),
    }
    # the exact p of twelve pairs of one sign, for three questions of one mode
    assert mode.p == pytest.approx(3 * 2 / 2**12)


def test_nothing_follows_from_some_of_the_answers(audited: Path, tmp_path: Path) -> None:
    case = copy(audited, tmp_path / "case")
    case.probe(question="prompt", target="target", pairs=10, grammar=GRAMMAR)
    summary = case.summarize()
    assert summary.wordings is not None
    assert (summary.wordings.asked, summary.wordings.judged) == (0, ())
    assert "80 prompts of the probe not asked yet" in summary.to_markdown()


def test_the_page_says_what_wording_does(answered: Path) -> None:
    page = (answered / "report/report.md").read_text()
    assert "holds in other words" in page
    assert "were not reviewed" in page
    assert "96 answers of the model" in page


def test_reviewers_decide_what_is_an_error(answered: Path, tmp_path: Path) -> None:
    case = copy(answered, tmp_path / "case")
    queue = case.review.seal()
    items = sorted(queue.items, key=lambda item: item.id)
    review = case.review
    review.store.add([decide(item) for item in items[:-1]])
    waiting = case.summarize().review
    assert waiting is not None
    assert (waiting.settled, waiting.judged) == (len(items) - 1, ())
    review.store.add([decide(items[-1])])
    summary = case.write_report()
    assert summary.review is not None
    (mode,) = summary.review.judged
    # people took no answer after an aside for an error: the twins are right, and the aside is gone
    assert (mode.rate, mode.rate_outside, mode.holds) == (1.0, 0.0, True)
    assert not any(effect.differs for effect in mode.effects)
    assert summary.review.controls.errors == 0
    assert verify_case(case.folder).verdict == "reproduces"
    assert "What reviewers said" in (case.folder / "report/report.md").read_text()


def decide(item: Item) -> Decision:
    return Decision(
        reviewer="ana",
        item=item.id,
        prompt_valid="yes",
        extraction_valid="yes",
        model_wrong="yes" if "de:" in item.prompt else "no",
    )


# -------------------------------------------------------------------------------- --- verification


def test_a_probe_reproduces_where_it_was_moved(answered: Path, tmp_path: Path) -> None:
    case = copy(answered, tmp_path / "elsewhere")
    verification = verify_case(case.folder)
    assert verification.verdict == "reproduces", verification.checks
    assert "probe" in {check.name for check in verification.checks}


def alter_choice(folder: Path) -> None:
    text = (folder / "probe.json").read_text()
    (folder / "probe.json").write_text(text.replace('"pairs": 12', '"pairs": 11'))


def alter_answers(folder: Path) -> None:
    (place,) = folder.glob("probe/runs/*/*/*/trajectory.jsonl")
    place.write_text(place.read_text().replace('"signal": "mismatch"', '"signal": "match"', 1))


def alter_tasks(folder: Path) -> None:
    bank = Bank.load(folder / "probe/bank.toml")
    for place in ("probe/bank.toml", "probe/runs/bank.toml"):
        (folder / place).unlink()
        Bank("case", bank.tasks[2:]).write(folder / place)


def alter_modes(folder: Path) -> None:
    content = json.loads((folder / "probe.json").read_text()) | {"modes": [5]}
    (folder / "probe.json").write_text(json.dumps(content))


def lose_the_choice(folder: Path) -> None:
    (folder / "probe.json").unlink()


@pytest.mark.parametrize(
    "alter", [alter_choice, alter_answers, alter_tasks, alter_modes, lose_the_choice]
)
def test_what_was_altered_shows(alter, answered: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    case = copy(answered, tmp_path / "case")
    alter(case.folder)
    verification = verify_case(case.folder)
    assert "probe" in {check.name for check in verification.checks if check.status == "failed"}
    if alter in (alter_tasks, alter_modes):
        with pytest.raises(LedgerError, match="other tasks"):
            case.summarize()


# --------------------------------------------------------------------------------------- --- levels


def make_pairs(count: int) -> Bank:
    sides = [f"mode 1 {side}" for _ in range(count) for side in ("inside", "outside")]
    tasks = (Task(id=f"t{i}", question="?", answer="a", family=f) for i, f in enumerate(sides))
    return Bank("pairs", tuple(tasks))


def test_false_statements_about_tasks_that_nothing_tells_apart() -> None:
    """At a level of 10 % per step 200 null probes may state 20; 34 would be 99.9 % unlikely."""
    bank, rng, claims = make_pairs(12), np.random.default_rng(7), 0
    for _ in range(200):
        hard = {task.id: rng.random() for task in bank}
        losses = {
            task: {words: float(rng.random() < rate) for words in GRAMMAR}
            for task, rate in hard.items()
        }
        (mode,) = judge_wordings(losses, bank, GRAMMAR, (1,), tests=1, alpha="1/10")
        claims += mode.p <= 0.1 or any(effect.differs for effect in mode.effects)
    assert claims < 34
