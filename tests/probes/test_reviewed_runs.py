"""Audits of probe runs: what is queued, how decisions become statuses of rows, and that nothing
hidden is shown.
"""

from __future__ import annotations

import io
import json
import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings, strategies as st
from probe_runs import BANK, row, write_runs
from profiles import count_examples
from rich.console import Console

from groundfault.base.ledger import Ledger
from groundfault.cli.main import cli
from groundfault.cli.probe_review import show_items as review
from groundfault.errors import InputError, LedgerError, PlanError
from groundfault.models import Response
from groundfault.probes import Config, run
from groundfault.probes.bank.bank import SHIPPED
from groundfault.probes.review.reviewed_runs import ReviewedRuns
from groundfault.probes.review.statuses import Status, items, queue, statuses
from groundfault.probes.running.runs import ProbeRow
from groundfault.review import Decision, Session

MODELS = ("vendor/secret-model-7b", "rival/other-model-9b")
POLICIES = ("stratified", "gp")
HIDDEN = [
    *MODELS,
    *POLICIES,
    "secret-model",
    "other-model",
    "seed",
    "4711",
    "mismatch",
    "unreadable",
    "signal",
]
HIDDEN += ["policy", "strategy", "score", "chance", "iteration", "query", "control"]
ERROR: dict[str, Any] = {"prompt_valid": "yes", "extraction_valid": "yes", "model_wrong": "yes"}
FINE: dict[str, Any] = {**ERROR, "model_wrong": "no"}


def _rows() -> list[ProbeRow]:
    """Two models, two policies, 12 queries each: right, wrong, unreadable, refused; some of them
    twice.
    """
    tasks, created = [task.id for task in BANK], []
    for model in MODELS:
        for policy in POLICIES:
            for query in range(1, 13):
                task = tasks[(query + (policy == "gp")) % len(tasks)]
                key = BANK[task].answer
                message = {
                    0: f"Answer: {key}",
                    1: "Answer: 987654",
                    2: "It may be 41, or 42; I leave it open, and "
                    "\x1b[2J[red]say[/red] no more about it here today.",
                    3: None if query > 10 else f"Hm.\nAnswer: {key}",
                }[query % 4]
                created.append(
                    row(model, policy, query, task, message, "none" if query % 2 else "number")
                )
    return created


ROWS = _rows()
ROUTED = [each for each in ROWS if each.signal in ("mismatch", "unreadable")]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return write_runs(tmp_path / "runs", ROWS)


def call(*arguments: Any, keys: str | None = None) -> Result:
    return CliRunner().invoke(cli, ["label", "review", *map(str, arguments)], input=keys)


# ----------------------------------------------------------------------------------- what is queued


def test_what_is_routed_to_a_person_is_queued_and_a_share_of_what_matched() -> None:
    items_by_row = items(ROWS)
    created = queue(ROWS, controls=0.25, seed=1)
    routed = {items_by_row[r.id].id for r in ROUTED}
    matched = {items_by_row[r.id].id for r in ROWS if r.signal == "match"}
    assert routed <= set(created.by_id)
    assert set(created.by_id) - routed < matched
    assert len(created.items) - len(routed) == -(-len(matched) // 4)
    assert {r.id for r in ROWS} - set(items_by_row) == {
        r.id for r in ROWS if r.signal == "unanswered"
    }
    assert set(queue(ROWS, controls=0).by_id) == routed
    assert set(queue(ROWS, controls=1).by_id) == routed | matched


def test_rows_that_show_the_same_are_one_item_and_by_row_they_are_not() -> None:
    by_key, by_row = queue(ROWS, controls=0), queue(ROWS, controls=0, unit="row")
    assert len(by_row.items) == len(ROUTED)
    assert len(by_key.items) < len(ROUTED)
    assert max(item.copy for item in by_row.items) == max(
        Counter(items(ROUTED)[r.id].id for r in ROUTED).values()
    )
    assert by_key.hash != by_row.hash


def test_the_order_of_rows_does_not_matter_and_more_rows_leave_items_as_they_are() -> None:
    permutation = random.Random(0).sample(ROWS, len(ROWS))
    for unit in ("key", "row"):
        assert queue(permutation, unit=unit).hash == queue(ROWS, unit=unit).hash  # type: ignore[arg-type]
        assert items(permutation, unit=unit) == items(ROWS, unit=unit)  # type: ignore[arg-type]
    half = queue(ROWS[:24], controls=0)
    assert set(half.by_id) <= set(queue(ROWS, controls=0).by_id)


def test_controls_are_drawn_at_random() -> None:
    sample = Counter(id for seed in range(300) for id in queue(ROWS, controls=0.5, seed=seed).by_id)
    routed = set(queue(ROWS, controls=0).by_id)
    often = [sample[id] for id in queue(ROWS, controls=1).by_id if id not in routed]
    assert all(110 < count < 190 for count in often)


@pytest.mark.parametrize(
    "settings", [{"controls": -0.1}, {"controls": 1.1}, {"unit": "model"}, {"reviewers": 0}]
)
def test_impossible_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(PlanError):
        queue(ROWS, **settings)


# ----------------------------------------------------------------------------------------- statuses

SAYS: dict[Status, dict[str, Any]] = {
    "invalid_prompt": {"prompt_valid": "no"},
    "extraction_artifact": {
        "prompt_valid": "yes",
        "extraction_valid": "no",
        "artefact": "extraction",
    },
    "format_artifact": {"prompt_valid": "yes", "extraction_valid": "no", "artefact": "format"},
    "confirmed_model_error": ERROR,
    "no_error": FINE,
    "disputed": {**ERROR, "model_wrong": "unsure"},
}


def test_a_decision_holds_for_every_row_that_shows_the_same() -> None:
    items_by_row = items(ROWS)
    for status, message in SAYS.items():
        for item in queue(ROWS, controls=0).items:
            result = statuses(ROWS, [Decision(reviewer="ana", item=item.id, **message)])
            assert {id for id, each in result.items() if each == status} == {
                i for i in items_by_row if items_by_row[i] == item
            }
            assert set(result.values()) == {status, "unaudited"}


def test_by_row_a_decision_holds_for_one_row() -> None:
    items_by_row = items(ROWS, unit="row")
    message = [Decision(reviewer="ana", item=items_by_row[r.id].id, **ERROR) for r in ROUTED[::2]]
    result = statuses(ROWS, message, unit="row")
    assert {id for id, status in result.items() if status == "confirmed_model_error"} == {
        r.id for r in ROUTED[::2]
    }


def test_two_reviewers_agree_or_an_adjudicator_decides() -> None:
    item = queue(ROWS).items[0]

    def decide(who: str, status: Status, **more: Any) -> Decision:
        return Decision(reviewer=who, item=item.id, **SAYS[status], **more)

    def resolve_status(*all: Decision) -> set[str]:
        return set(statuses(ROWS, all, reviewers=2).values()) - {"unaudited"}

    one, other = decide("ana", "confirmed_model_error"), decide("ben", "no_error")
    assert resolve_status(one) == set()
    assert resolve_status(one, replace(one, reviewer="ben")) == {"confirmed_model_error"}
    assert resolve_status(one, other) == {"disputed"}
    assert resolve_status(one, other, decide("cy", "no_error")) == {"no_error"}
    assert resolve_status(one, other, decide("cy", "format_artifact", role="adjudicator")) == {
        "format_artifact"
    }


ROUTED_IDS = sorted(queue(ROWS, controls=0).by_id)
decisions_on_rows = st.lists(
    st.builds(
        lambda who, item, status, role: Decision(
            reviewer=who, item=item, role=role, **SAYS[status]
        ),
        st.sampled_from(["ana", "ben", "cy"]),
        st.sampled_from(ROUTED_IDS[:3]),
        st.sampled_from(list(SAYS)),
        st.sampled_from(["reviewer", "reviewer", "adjudicator"]),
    ),
    max_size=10,
).map(lambda message: [replace(d, seq=n) for n, d in enumerate(message, start=1)])


@given(decisions_on_rows, st.integers(1, 2), st.randoms(use_true_random=False))
@settings(max_examples=count_examples(60))
def test_statuses_depend_on_no_order(
    message: list[Decision], count: int, order: random.Random
) -> None:
    result = statuses(ROWS, message, reviewers=count)
    assert set(result) == {r.id for r in ROWS}
    assert set(result.values()) <= set(get_args(Status))
    rows, permutation = order.sample(ROWS, len(ROWS)), order.sample(message, len(message))
    assert statuses(rows, permutation, reviewers=count) == result
    decided = {d.item for d in message}
    items_by_row = items(ROWS)
    for each in ROWS:
        if each.id not in items_by_row or items_by_row[each.id].id not in decided:
            assert result[each.id] == "unaudited"
    if all(d.verdict != "model_error" for d in message):
        assert "confirmed_model_error" not in result.values()


# ----------------------------------------------------------------------------------------- a folder


def test_the_queue_is_sealed_in_the_ledger_before_the_first_decision(runs: Path) -> None:
    audit = ReviewedRuns(runs)
    assert set(audit.statuses.values()) == {"unaudited"}
    with pytest.raises(InputError, match=r"no review of .* has begun"):
        audit.queue  # noqa: B018
    created = audit.seal()
    (event,) = Ledger(runs / "ledger.db").events("queue_sealed")
    assert event.body["queue"] == created.hash == ReviewedRuns(runs).queue.hash
    assert {name: event.body[name] for name in ("seed", "unit", "controls", "reviewers")} == {
        "seed": 4711,
        "unit": "key",
        "controls": 0.25,
        "reviewers": 1,
    }
    assert (event.body["items"], event.body["reviews"]) == (len(created.items), "reviews.db")
    ReviewedRuns(runs).seal()
    assert len(Ledger(runs / "ledger.db").events()) == 1
    session = Session(created, audit.store, "ana")
    session.decide(**ERROR)
    kinds = [event.kind for event in Ledger(runs / "reviews.db").events()]
    assert kinds == ["queue_sealed", "decision"]
    with pytest.raises(LedgerError, match="split"):
        ReviewedRuns(runs).seal(["ana", "ben"])


class Says:
    """A model that gives the same answer to everything."""

    name = "scripted/same"

    async def answer(self, question: Any) -> Response:
        return Response("Answer: 10")


@pytest.mark.parametrize("change", ["response", "twice", "manifest"])
def test_rows_that_the_run_did_not_record_are_not_reviewed(tmp_path: Path, change: str) -> None:
    for name in ("bank.toml", "grammar.toml"):
        (tmp_path / name).write_bytes((SHIPPED / name).read_bytes())
    files = {"bank": tmp_path / "bank.toml", "grammar": tmp_path / "grammar.toml"}
    created = run(Config(**files, policies=["stratified"], seeds=[0], iterations=2), Says())
    assert ReviewedRuns(created).seal().items
    place = created.folder / (
        "manifest.json"
        if change == "manifest"
        else "scripted-same/stratified/seed-0/trajectory.jsonl"
    )
    text = place.read_text()
    lines = text.splitlines(keepends=True)
    place.write_text(
        {
            "response": text.replace("Answer: 10", "Answer: 11", 1),
            "twice": "".join([*lines, lines[-1]]),
            "manifest": text.replace('"reviewers": 1', '"reviewers": 2'),
        }[change]
    )
    assert place.read_text() != text
    with pytest.raises(
        LedgerError, match=r"manifest.json was changed|line [13] was changed after the run"
    ):
        ReviewedRuns(created.folder)
    place.write_text(text)
    assert ReviewedRuns(created.folder).queue


def test_a_run_that_went_on_adds_items_and_keeps_decisions(tmp_path: Path) -> None:
    runs = write_runs(tmp_path / "runs", [r for r in ROWS if r.model == MODELS[0]])
    audit = ReviewedRuns(runs)
    session = Session(audit.seal(), audit.store, "ana")
    while session.item:
        session.decide(**ERROR)
    more = [*ROWS, row(MODELS[1], "gp", 99, "bat-and-ball", "Answer: 31337")]
    write_runs(runs, more)
    longer_queue = ReviewedRuns(runs)
    with pytest.raises(LedgerError, match="not those whose review was sealed"):
        longer_queue.queue  # noqa: B018
    assert Counter(longer_queue.statuses.values())["confirmed_model_error"] >= len(ROUTED)
    again = Session(longer_queue.seal(), longer_queue.store, "ana")
    assert again.remaining >= 1
    assert len(Ledger(runs / "ledger.db").events("queue_sealed")) == 2


def test_controls_tell_what_the_signal_misses(runs: Path) -> None:
    audit = ReviewedRuns(runs)
    created = audit.seal()
    assert (audit.control_errors.audited, audit.control_errors.rate) == (0, None)
    routed = {item.id for item in queue(ROWS, controls=0).items}
    controls = [item for item in created.items if item.id not in routed]
    message = [
        Decision(reviewer="ana", item=item.id, **(FINE if n else ERROR))
        for n, item in enumerate(controls)
    ]
    audit.store.add(message)
    result = audit.control_errors
    assert (result.controls, result.audited, result.errors) == (len(controls), len(controls), 1)
    assert result.matched > result.controls
    assert result.rate == pytest.approx(1 / len(controls))
    assert result.low is not None
    assert result.high is not None
    assert 0 < result.low < result.rate < result.high < 1
    assert Counter(audit.statuses.values())["confirmed_model_error"] >= 1


def test_a_review_by_row_is_as_the_config_says(tmp_path: Path) -> None:
    runs = write_runs(tmp_path / "runs", ROWS, unit="row", reviewers=2, controls=0)
    audit = ReviewedRuns(runs)
    assert len(audit.seal().items) == len(ROUTED)
    first = items(ROWS, unit="row")[ROUTED[0].id]
    audit.store.add([Decision(reviewer=who, item=first.id, **ERROR) for who in ("ana", "ben")])
    assert {id for id, status in audit.statuses.items() if status != "unaudited"} == {ROUTED[0].id}
    assert "by row, 2 reviewers each" in call(runs, "--status").output
    with pytest.raises(PlanError, match="one reviewer each"):
        ReviewedRuns(runs).seal(["ana", "ben"])


def test_reviews_kept_elsewhere_are_asked_for(runs: Path, tmp_path: Path) -> None:
    ReviewedRuns(runs, tmp_path / "other.db").seal()
    with pytest.raises(InputError, match=r"kept in .*other.db, not in reviews.db: say --store"):
        ReviewedRuns(runs).seal()
    assert set(ReviewedRuns(runs, tmp_path / "other.db").statuses.values()) == {"unaudited"}
    refused = call(runs, "--status")
    assert isinstance(refused.exception, InputError)


def test_unblinding_is_on_record_and_marks_later_decisions(runs: Path) -> None:
    audit = ReviewedRuns(runs)
    session = Session(audit.seal(), audit.store, "ana")
    session.decide(**ERROR)
    with pytest.raises(InputError, match="give the reason"):
        audit.unblind("ana", " ")
    assert not audit.unblindings
    items_by_row = audit.unblind("ana", "all is reviewed")
    assert {each["model"] for each in items_by_row} == set(MODELS)
    assert {each["item"] for each in items_by_row} == set(audit.queue.by_id)
    (event,) = audit.unblindings
    assert (event.kind, event.body["actor"], event.body["reason"]) == (
        "unblinded",
        "ana",
        "all is reviewed",
    )
    session.decide(**ERROR)
    assert [d.unblinded for d in audit.decisions] == [False, True]
    assert sorted(result.unblinded for result in audit.resolutions.values()) == [False, True]


# --------------------------------------------------------------------------------------- the screen


def screen(runs: Path, keys: str, reviewer: str = "ana", **options: Any) -> str:
    audit = ReviewedRuns(runs)
    out = io.StringIO()
    pressed = iter(keys)
    console = Console(
        file=out, force_terminal=True, width=100, highlight=False, color_system="truecolor"
    )
    session = Session(audit.seal(), audit.store, reviewer, **options)
    review(session, console, lambda: next(pressed, "q"))
    return out.getvalue()


def test_a_session_decides_with_single_keys(runs: Path) -> None:
    message = screen(runs, "yyyynenynfuyu")
    assert [d.verdict for d in ReviewedRuns(runs).decisions] == [
        "model_error",
        "extraction_artifact",
        "invalid_prompt",
        "format_artifact",
        "unsure",
    ]
    assert "left: run the same command again" in message
    everything = screen(runs, "yyn" * 100)
    assert "all are decided" in everything


def test_keys_that_mean_nothing_help_and_lose_nothing(runs: Path) -> None:
    message = screen(runs, "x?ybnb")
    assert "Extraction: valid if" in message
    assert "you said: prompt valid: no" in message
    assert "this is the first item" in screen(runs, "bbb", "ben")
    assert [d.verdict for d in ReviewedRuns(runs).decisions] == ["invalid_prompt"]


def test_what_a_model_says_is_shown_and_not_obeyed(runs: Path) -> None:
    message = screen(runs, "s" * 100)
    assert "\ufffd[2J[red]say[/red] no more" in message
    own = re.sub(
        r"\x1b\[[0-9;]*m|\x1b\[2J\x1b\[H|\x1b\[H\x1b\[2J", "", message
    )  # colours, and the screen we clear
    assert "\x1b" not in own


def test_a_long_response_is_cut_and_shown_on_demand(tmp_path: Path) -> None:
    long = row(
        MODELS[0],
        "gp",
        1,
        "bat-and-ball",
        "word " * 5000 + "MIDDLE " + "word " * 5000 + "\nAnswer: 3",
    )
    runs = write_runs(tmp_path / "runs", [long])
    message = screen(runs, "q")
    assert "characters are not shown" in message
    assert "MIDDLE" not in message
    assert "MIDDLE" in screen(runs, "aq")


def _everything_shown(runs: Path, tmp_path: Path) -> dict[str, str]:
    """All that a reviewer gets to see: the session, help and all, and every sheet."""
    items_by_row = {"session": screen(runs, "?ayyy" * 200, "zoe")}
    for format, name in (("csv", "s.csv"), ("jsonl", "s.jsonl"), ("labelstudio", "s.json")):
        result = call(runs, "--reviewer", "eve", "--export", tmp_path / name, "--format", format)
        assert result.exit_code == 0, result.output
        items_by_row[format] = (tmp_path / name).read_text(encoding="utf-8-sig") + result.output
    items_by_row["config"] = (tmp_path / "s-config.xml").read_text()
    return items_by_row


def test_nothing_hidden_is_ever_shown(runs: Path, tmp_path: Path) -> None:
    """Neither model, policy, seed, signal, label nor control, nor who else decided what."""
    audit = ReviewedRuns(runs)
    other = Session(audit.seal(), audit.store, "annabel-the-other")
    while other.item:
        other.decide(**ERROR, note="this-is-what-another-thought")
    secrets = [
        *HIDDEN,
        "annabel",
        "this-is-what",
        *{r.key for r in ROWS},
        *{r.reason for r in ROUTED},
    ]
    innocent = [*{r.prompt for r in ROWS}, *{r.response for r in ROWS if r.response}, BANK.name]
    for where, text in _everything_shown(runs, tmp_path).items():
        for word in secrets:
            if not any(word in each for each in innocent):
                assert not re.search(rf"\b{re.escape(word)}\b", text), (
                    f"{word} is shown in the {where}"
                )
        for each in ROUTED:
            assert each.id not in text
    assert sum(any(word in each for each in innocent) for word in secrets) <= 3


def test_an_adjudicator_sees_no_more(tmp_path: Path) -> None:
    runs = write_runs(tmp_path / "runs", ROWS, reviewers=2)
    audit = ReviewedRuns(runs)
    first = audit.seal().items[0]
    audit.store.add(
        [
            Decision(reviewer=who, item=first.id, **message)
            for who, message in (("ana", ERROR), ("ben", FINE))
        ]
    )
    message = screen(runs, "yyn", "cy", adjudicate=True)
    assert "adjudication, 0 of 1 decided" in message
    assert not re.search(r"\b(ana|ben)\b", message)
    assert ReviewedRuns(runs).resolutions[first.id].how == "adjudicated"


# -------------------------------------------------------------------------------------- the command


def test_the_command_reviews_with_single_keys(runs: Path) -> None:
    result = call(runs, "--reviewer", "ana", keys="yyyq")
    assert result.exit_code == 0, result.output
    assert "left: run the same command again" in result.output
    content = json.loads(call(runs, "--status", "--json", "-").output)
    assert (content["decisions"], content["settled"], content["reviewers"]) == (1, 1, {"ana": 1})
    assert "1 settled, 0 adjudicated, 0 disputed" in call(runs, "--status").output


def test_a_note_is_kept_and_offered_again(runs: Path) -> None:
    call(runs, "--reviewer", "ana", keys="tthe key is odd\nyyyq")
    call(runs, "--reviewer", "ana", keys="bt\nyynq")
    assert [(d.verdict, d.note) for d in ReviewedRuns(runs).decisions] == [
        ("model_error", "the key is odd"),
        ("no_error", "the key is odd"),
    ]


def test_a_sheet_goes_out_and_comes_back_all_or_none(runs: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "s.jsonl"
    assert call(runs, "--reviewer", "ben", "--export", sheet).exit_code == 0
    rows = [json.loads(line) for line in sheet.read_text().splitlines()]
    assert [each["item"] for each in rows] == [
        item.id for item in ReviewedRuns(runs).queue.of("ben")
    ]
    filled = [{**each, **ERROR} for each in rows]
    sheet.write_text(
        "".join(
            json.dumps(each) + "\n" for each in [*filled[:-1], {**filled[-1], "response": "other"}]
        )
    )
    refused = call(runs, "--reviewer", "ben", "--import", sheet)
    assert isinstance(refused.exception, InputError)
    assert "response of item" in str(refused.exception)
    assert ReviewedRuns(runs).decisions == []
    sheet.write_text("".join(json.dumps(each) + "\n" for each in filled))
    assert (
        f"kept {len(rows)} decisions" in call(runs, "--reviewer", "ben", "--import", sheet).output
    )
    assert len(ReviewedRuns(runs).decisions) == len(rows)
    assert isinstance(
        call(runs, "--reviewer", "ben", "--export", sheet).exception, InputError
    )  # nothing is left
    # as after a kill whose victim does not know how far it came: what stands is no revision
    again = call(runs, "--reviewer", "ben", "--import", sheet).output
    assert f"kept 0 decisions; {len(rows)} of the sheet stood already" in again
    assert len(ReviewedRuns(runs).decisions) == len(rows)
    filled[0]["model_wrong"] = "no"
    sheet.write_text("".join(json.dumps(each) + "\n" for each in filled))
    assert "kept 1 decision;" in call(runs, "--reviewer", "ben", "--import", sheet).output
    assert json.loads(call(runs, "--status", "--json", "-").output)["revised"] == 1


def test_agreement_of_two_and_an_adjudicator(tmp_path: Path) -> None:
    runs = write_runs(tmp_path / "runs", ROWS, reviewers=2)
    call(runs, "--reviewer", "ana", keys="yyy" * 100)
    assert "by two reviewers yet" in call(runs, "--agreement").output
    call(runs, "--reviewer", "ben", keys="yyn" + "yyy" * 100)
    content = json.loads(call(runs, "--agreement", "--json", "-").output)
    total = len(ReviewedRuns(runs).queue.items)
    assert content["verdict"]["raw"]["value"] == pytest.approx(1 - 1 / total)
    assert content["prompt_valid"]["kappa"]["value"] is None
    message = call(runs, "--agreement").output
    assert "Gwet's AC1" in message
    assert "all ratings are of one category" in message
    assert json.loads(call(runs, "--status", "--json", "-").output)["disputed"] == 1
    call(runs, "--reviewer", "ana", "--adjudicate", keys="yyy")
    assert (
        json.loads(call(runs, "--status", "--json", "-").output)["disputed"] == 1
    )  # who reviewed it may not
    call(runs, "--reviewer", "cy", "--adjudicate", keys="yyy")
    content = json.loads(call(runs, "--status", "--json", "-").output)
    assert (content["adjudicated"], content["adjudicators"]) == (1, {"cy": 1})


def test_items_are_split_as_the_first_session_says(runs: Path) -> None:
    call(runs, "--reviewer", "ana", "--split", "ana, ben", keys="q")
    queued = ReviewedRuns(runs).queue
    assert queued.split == ("ana", "ben")
    assert len(queued.of("ana")) - len(queued.of("ben")) in (0, 1)
    assert isinstance(call(runs, "--reviewer", "cy", keys="q").exception, InputError)
    assert call(runs, "--reviewer", "ben", keys="yyyq").exit_code == 0


def test_unblinding_needs_a_reason(runs: Path) -> None:
    call(runs, "--reviewer", "ana", keys="yyyq")
    assert isinstance(call(runs, "--reviewer", "ana", "--unblind").exception, InputError)
    message = call(runs, "--reviewer", "ana", "--unblind", "--reason", "the review is over")
    assert MODELS[0] in message.output
    assert "on record" in message.output
    call(runs, "--reviewer", "ana", keys="yyyq")
    assert "1 decision made after unblinding" in call(runs, "--status").output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "say who you are"),
        (["--status", "--agreement"], "--status and --agreement do not go together"),
        (["--reviewer", "a", "--export", "x", "--import", "y"], "--export and --import"),
        (["--reviewer", "a", "--json", "-"], "--json goes with"),
        (["--reviewer", "a", "--format", "csv"], "--format goes with --export"),
        (["--reviewer", "a", "--reason", "x"], "--reason goes with --unblind"),
        (["--status", "--split", "a,b"], "--split is fixed"),
        (["--reviewer", "a", "--export", "sheet"], "say --format"),
        (["--reviewer", " ", "--export", "s.csv"], "a reviewer has a name"),
        (["--reviewer", "a", "--split", "a,a"], "named twice"),
        (["--status"], "no review of .* has begun"),
    ],
)
def test_what_does_not_go_together_is_one_clear_line(
    runs: Path, arguments: list[str], message: str
) -> None:
    refused = call(runs, *arguments)
    assert isinstance(refused.exception, InputError | PlanError)
    assert re.search(message, str(refused.exception))


def test_a_folder_without_runs_and_runs_without_anything_to_review(tmp_path: Path) -> None:
    assert "holds no runs" in str(call(tmp_path, "--reviewer", "ana").exception)
    runs = write_runs(tmp_path / "runs", [row(MODELS[0], "gp", 1, "bat-and-ball", None)])
    assert "the review is empty" in str(call(runs, "--reviewer", "ana").exception)
    assert not (runs / "reviews.db").exists()
