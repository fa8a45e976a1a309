"""An audit as the early-stopping manager of an Inspect task: in a real evaluation, and by hand."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("inspect_ai", reason="needs inspect_ai")

from inspect_ai import Task, eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import SampleScore, Score, exact, match

from groundfault.errors import InputError, LedgerError
from groundfault.sequential import StopEarly, verify_certificate

SETTINGS = {"threshold": 0.85, "groups": ["topic"], "burn_in": 20, "seed": 1}


def samples(count=160):
    return [
        Sample(
            id=f"s{i:03d}",
            input=str(i),
            target="yes",
            metadata={"topic": "sums" if i % 4 == 0 else "dates"},
        )
        for i in range(count)
    ]


def right(number):
    """Half of the sums are wrong, and nothing else is."""
    return number % 8 != 0


def answer(messages, tools, tool_choice, config):
    output = ModelOutput.from_content(
        "mockllm/model", "yes" if right(int(messages[-1].text)) else "no"
    )
    output.usage = ModelUsage(
        input_tokens=1, output_tokens=1, total_tokens=2
    )  # without it tokens would be counted
    return output


def run(stopping, folder, **options):
    task = Task(dataset=stopping.dataset, scorer=match(), early_stopping=stopping)
    model = get_model("mockllm/model", custom_outputs=answer, memoize=False)
    [log] = evaluate(
        task, model=model, display="none", log_dir=str(folder), max_samples=4, **options
    )
    return log


def test_an_evaluation_stops_when_a_null_falls(tmp_path):
    stopping = StopEarly(samples(), ledger=tmp_path / "audit.db", **SETTINGS)
    log = run(stopping, tmp_path)
    assert log.status == "success"
    summary = log.results.early_stopping
    assert summary.manager == "groundfault"
    assert summary.metadata["verdict"] == stopping.audit.verdict == "failure mode found"
    assert summary.metadata["labelled"] < 80
    assert len(log.samples) <= summary.metadata["labelled"] + 4  # those that were running
    assert len(log.samples) + len(summary.early_stops) == 160
    assert summary.early_stops[0].reason.startswith("failure mode found: ")
    scores = {sample.id: float(right(int(sample.input))) for sample in log.samples}
    assert all(scores[r.query.id] == r.score for r in stopping.audit.rounds)
    assert verify_certificate(
        stopping.audit.certificate(), pool=stopping.audit.pool, policy=True
    ).reproduces

    again = StopEarly(
        samples(), ledger=tmp_path / "audit.db", **SETTINGS
    )  # the same evaluation once more
    assert not run(again, tmp_path).samples
    assert again.audit.log_wealth == stopping.audit.log_wealth


@pytest.mark.parametrize("retries", [0, 1])
def test_a_sample_that_errors_for_good_does_not_make_all_others_run(tmp_path, retries):
    stopping = StopEarly(samples(80), **SETTINGS)
    lost = stopping.dataset[0].input

    def answer_or_fail(messages, tools, tool_choice, config):
        if messages[-1].text == lost:
            raise RuntimeError("the sandbox is gone")
        return answer(messages, tools, tool_choice, config)

    task = Task(dataset=stopping.dataset, scorer=match(), early_stopping=stopping)
    model = get_model("mockllm/model", custom_outputs=answer_or_fail, memoize=False)
    settings = {"display": "none", "log_dir": str(tmp_path), "max_samples": 4}
    [log] = evaluate(task, model=model, fail_on_error=False, retry_on_error=retries, **settings)
    assert log.status == "success"
    assert stopping.audit.verdict == "failure mode found"
    assert stopping.audit.rounds[0].score is None
    assert len(log.samples) <= stopping.audit.labelled + 4


@pytest.mark.parametrize("name", [None, "exakt"])
def test_a_scorer_that_is_not_chosen_is_asked_for_before_a_sample_is_paid_for(tmp_path, name):
    stopping = StopEarly(samples(), scorer=name, **SETTINGS)
    calls = []

    def count(*request):
        calls.append(1)
        return answer(*request)

    task = Task(dataset=stopping.dataset, scorer=[match(), exact()], early_stopping=stopping)
    model = get_model("mockllm/model", custom_outputs=count, memoize=False)
    [log] = evaluate(task, model=model, display="none", log_dir=str(tmp_path))
    assert log.status == "error"
    assert ("say which is tested" if name is None else "no scorer 'exakt'") in log.error.message
    assert not calls


# -------------------------------------------------------------------------------------- --- by hand


def complete(stopping, order):
    """Samples complete in an order, and none is scheduled any more once the audit is over."""

    async def play():
        await stopping.start_task(None, list(stopping.dataset), 1)
        for sample in order:
            if await stopping.schedule_sample(sample.id, 1) is None:
                score = Score(value="C" if right(int(sample.input)) else "I")
                await stopping.complete_sample(sample.id, 1, {"match": SampleScore(score=score)})
        return await stopping.complete_task()

    return asyncio.run(play())


def schedule(stopping):
    """Ids of the samples that are begun where none completes meanwhile."""

    async def play():
        ids = [sample.id for sample in stopping.dataset]
        return [name for name in ids if await stopping.schedule_sample(name, 1) is None]

    return asyncio.run(play())


def test_no_more_samples_run_than_the_budget_has_labels(tmp_path):
    settings = {**SETTINGS, "alpha": 1e-9, "budget": 12, "ledger": tmp_path / "audit.db"}
    first = StopEarly(samples(), **settings)
    complete(first, list(first.dataset)[:5])
    # those that have their labels are not paid for again
    again = StopEarly(samples(), **settings)
    assert again.audit.labelled == 5
    assert schedule(again) == [sample.id for sample in again.dataset][5:12]
    stop = asyncio.run(again.schedule_sample(again.dataset[20].id, 1))
    assert stop.reason == "the budget of 12 labels is spent"


def test_the_order_in_which_samples_complete_does_not_matter():
    first, second = StopEarly(samples(), **SETTINGS), StopEarly(samples(), **SETTINGS)
    complete(first, list(first.dataset))
    complete(second, samples())
    assert [r.to_dict() for r in first.audit.rounds] == [r.to_dict() for r in second.audit.rounds]
    assert len(first._scores) < len(second._scores)  # in its own order it takes fewer samples


def test_the_dataset_is_in_the_order_of_the_audit():
    stopping = StopEarly(samples(), **SETTINGS)
    assert sorted(s.id for s in stopping.dataset) == sorted(s.id for s in samples())
    ids = [sample.id for sample in stopping.dataset]
    for name in ids[:10]:
        query = stopping.audit.ask()
        assert query.id == name
        stopping.audit.tell(query, 1.0)
    numbered = StopEarly([Sample(input=x) for x in "abc"], threshold=0.5).dataset
    assert {sample.id: sample.input for sample in numbered} == {1: "a", 2: "b", 3: "c"}


def play_one(stopping, value):
    async def play():
        await stopping.schedule_sample(stopping.dataset[0].id, 1)
        scores = (
            value if isinstance(value, dict) else {"match": SampleScore(score=Score(value=value))}
        )
        await stopping.complete_sample(stopping.dataset[0].id, 1, scores)
        return stopping.audit.rounds[0].score

    return asyncio.run(play())


@pytest.mark.parametrize(
    ("value", "score"),
    [
        ("C", 1.0),
        ("I", 0.0),
        ("P", 0.5),
        ("N", None),
        (0.25, 0.25),
        (True, 1.0),
        (float("nan"), None),
        ({}, None),
    ],
)
def test_scores_of_inspect(value, score):
    assert play_one(StopEarly(samples(20), threshold=0.8), value) == score


def test_the_first_epoch_counts_not_the_first_to_complete():
    stopping = StopEarly(samples(4), threshold=0.8)
    first = stopping.dataset[0].id

    async def play():
        for epoch, value in ((2, "I"), (1, "C"), (3, "I")):
            await stopping.schedule_sample(first, epoch)
            await stopping.complete_sample(
                first, epoch, {"match": SampleScore(score=Score(value=value))}
            )

    asyncio.run(play())
    assert [r.score for r in stopping.audit.rounds if r.closed] == [1.0]


def test_a_sample_that_ended_in_an_error_is_unscored_at_the_end():
    stopping = StopEarly(samples(6), threshold=0.8)

    async def play():
        for sample in stopping.dataset:
            await stopping.schedule_sample(sample.id, 1)
        for sample in list(stopping.dataset)[1:]:
            await stopping.complete_sample(
                sample.id, 1, {"match": SampleScore(score=Score(value="C"))}
            )
        assert stopping.audit.labelled == 0
        return await stopping.complete_task()

    assert asyncio.run(play())["labelled"] == 6
    assert [r.score for r in stopping.audit.rounds] == [None, 1, 1, 1, 1, 1]


def test_bad_input(tmp_path):
    two = {name: SampleScore(score=Score(value="C")) for name in ("a", "b")}
    with pytest.raises(InputError, match="say which is tested"):
        play_one(StopEarly(samples(8), threshold=0.8), two)
    assert play_one(StopEarly(samples(8), threshold=0.8, scorer="b"), two) == 1.0
    with pytest.raises(InputError, match="no scorer 'c'"):
        play_one(StopEarly(samples(8), threshold=0.8, scorer="c"), two)
    with pytest.raises(InputError, match="is a dict, not one number"):
        play_one(
            StopEarly(samples(8), threshold=0.8), {"a": SampleScore(score=Score(value={"x": 1}))}
        )
    with pytest.raises(InputError, match="outside"):
        play_one(StopEarly(samples(8), threshold=0.8), 7.0)
    with pytest.raises(InputError, match="has no metadata 'level'"):
        StopEarly(samples(8), threshold=0.8, groups=["level"])
    with pytest.raises(InputError, match="ids must be unique"):
        StopEarly([Sample(id="a", input="x")] * 2, threshold=0.8)
    stopping = StopEarly(samples(8), threshold=0.8, ledger=tmp_path / "l.db")
    with pytest.raises(InputError, match="is not in the audit"):
        asyncio.run(stopping.start_task(None, [Sample(id="other", input="x")], 1))
    with pytest.raises(LedgerError, match="other settings"):
        StopEarly(samples(8), threshold=0.7, ledger=tmp_path / "l.db")
