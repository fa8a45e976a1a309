"""``probe arena``: from the shell, over simulated landscapes and over a run in which everything was
asked.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from groundfault.cli.main import cli
from groundfault.errors import GroundfaultError, InputError
from groundfault.models import Question, Response
from groundfault.probes import Bank, Config, Grammar, probes, run
from groundfault.probes.bank.bank import SHIPPED
from groundfault.probes.review.reviewed_runs import ReviewedRuns
from groundfault.review import Decision
from groundfault_lab.probes.arena import WORLDS, arena, draw_landscape, load_replay
from groundfault_lab.probes.policies import POLICIES
from groundfault_studies import probe_policies


def shell(*args: Any) -> Result:
    return CliRunner().invoke(cli, ["lab", "probe", "arena", *map(str, args)])


def lines(*rows: dict[str, Any] | str) -> str:
    return "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)


def test_the_arena_from_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    arguments = [
        "--world",
        "diffuse",
        "--policy",
        "uniform",
        "--landscapes",
        20,
        "--budget",
        12,
        "--budget",
        15,
    ]
    content = shell(*arguments)
    assert content.exit_code == 0, content.output
    head, _, *table, note = content.output.splitlines()
    assert (
        head.split() == "landscape policy budget keys difference ratio tasks rows artefacts".split()
    )
    assert [line.split()[2] for line in table] == ["12", "15"]
    number, ends = r"[\d.]+", r"\[[+-]?[\d.]+, [+-]?[\d.]+\]"
    counts = rf"{number} +{number} +{number}"
    row = rf"diffuse +uniform +\d+ +{number} +[+-]{number} {ends} +{number} {ends} +{counts}"
    assert all(re.fullmatch(row, line.strip()) for line in table)
    assert "difference and ratio are to stratified" in note
    same = json.loads(shell(*arguments, "--json", "-").output)
    assert same["settings"]["errors"] == "audited"
    assert [standing["budget"] for standing in same["standings"]] == [12, 15]
    assert f"{same['standings'][0]['keys']:.1f}" == table[0].split()[3]
    assert "at least 20" in str(shell("--landscapes", 3).exception)


# ----------------------------------------------------------------------------------------- replayed


def test_a_replayed_file_is_the_landscape_that_was_written(tmp_path: Path) -> None:
    land = draw_landscape("task by component", np.random.default_rng(0))
    keys = ["|".join(parts) for parts in itertools.product("pqrs", "abc", "abc", "abc")]
    rows = [
        {"key": key, "mismatch": bool(mismatch), "wrong": bool(wrong)}
        for key, mismatch, wrong in zip(keys, land.mismatch, land.wrong, strict=False)
    ]
    place = tmp_path / "all.jsonl"
    place.write_text(lines(*rows[:100], *rows[103:]))
    wrong, mismatch = land.wrong[:108].copy(), land.mismatch[:108].copy()
    wrong[100:103] = mismatch[100:103] = False
    replay = load_replay(place)
    again = replay.landscapes["model"]
    assert replay.audited
    assert (again.tasks, again.sizes) == (4, (3, 3, 3))
    assert np.flatnonzero(again.blocked).tolist() == [100, 101, 102]
    assert (again.wrong == wrong).all()
    assert (again.mismatch == mismatch).all()
    items_by_row = shell(
        "--replay",
        place,
        "--policy",
        "exhaustive",
        "--policy",
        "gp",
        "--budget",
        105,
        "--landscapes",
        20,
        "--json",
        "-",
    )
    content = json.loads(items_by_row.output)
    everything, gp = content["standings"]
    assert everything["keys"] == gp["keys"] == wrong.sum() > 0  # the whole bank fits the budget
    assert everything["gain_interval"] is gp["ratio_interval"] is None
    assert everything["world"] == "model"


def test_without_an_audit_a_replay_is_a_proxy_and_says_so(tmp_path: Path) -> None:
    place = tmp_path / "two.jsonl"
    keys = [f"{task}|{option}" for task in "abcd" for option in "xyz"]
    place.write_text(
        lines(
            *(
                {"key": key, "mismatch": key < "b", "model": model}
                for model in ("one", "two")
                for key in keys[:-1]
            ),
            {"key": keys[-1], "mismatch": True, "wrong": False, "model": "two"},
        )
    )
    replay = load_replay(place)
    assert not replay.audited
    assert replay.landscapes["two"].wrong.sum() == 4  # the one that is said to be no error, too
    content = shell(
        "--replay",
        place,
        "--world",
        "two",
        "--policy",
        "uniform",
        "--landscapes",
        20,
        "--budget",
        3,
    )
    assert content.output.startswith("proxy: not all of this run was reviewed")
    with pytest.raises(GroundfaultError, match="no landscape 'three'; there are one, two"):
        arena(["gp"], ["three"], replay=replay)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no prompt keys"),
        ("{}\n", 'line 1: write {"key"'),
        ("[1]\n", 'line 1: write {"key"'),
        ("no\n", 'line 1: write {"key"'),
        (lines({"key": 3, "mismatch": True}), "line 1: model and key must be texts"),
        (lines({"key": "a|b", "mismatch": 1}), "line 1: mismatch and wrong must be true or false"),
        (lines(*[{"key": "a|b", "mismatch": True}] * 2), "line 2: the key 'a|b' was there before"),
        (
            lines({"key": "a|b", "mismatch": True}, {"key": "a|b|c", "mismatch": True}),
            "as many in each",
        ),
        (lines({"key": "a", "mismatch": True}), "a key is a task and one option of each group"),
        (
            lines(*({"key": f"{n}|{n}", "mismatch": True} for n in range(1001))),
            "more than 1,000,000 keys",
        ),
    ],
)
def test_a_bad_replay_is_one_clear_line(tmp_path: Path, text: str, message: str) -> None:
    place = tmp_path / "bad.jsonl"
    place.write_text(text)
    with pytest.raises(InputError, match=re.escape(message)) as error:
        load_replay(place)
    assert "bad.jsonl" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_replay_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*: No such file"):
        load_replay(tmp_path / "none.jsonl")
    (tmp_path / "latin.jsonl").write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"cannot read .*: it is not UTF-8 text"):
        load_replay(tmp_path / "latin.jsonl")


class TimidBrittle:
    """Takes the shortcut where one is offered; to one task it does not say what it answers."""

    name = "scripted/brittle"

    def __init__(self, bank: Bank, grammar: Grammar) -> None:
        self.probes = {probe.prompt: probe for probe in probes(bank, grammar)}

    async def answer(self, question: Question) -> Response:
        probe = self.probes[question.messages[0]["content"]]
        if probe.task.id == "machines" and "check" in probe.assignment:
            return Response(
                "Well, that depends on many things, of which I would rather not speak here at all."
            )
        message = (
            probe.task.slots["shortcut"] if "shortcut" in probe.assignment else probe.task.answer
        )
        return Response(f"Answer: {message}")


def test_an_exhaustive_run_is_replayed_as_a_proxy_and_then_as_audited(tmp_path: Path) -> None:
    bank, grammar = Bank("three", Bank.shipped().tasks[:3]), Grammar.shipped()
    bank.write(tmp_path / "bank.toml")
    (tmp_path / "grammar.toml").write_bytes((SHIPPED / "grammar.toml").read_bytes())
    files = {"bank": tmp_path / "bank.toml", "grammar": tmp_path / "grammar.toml"}
    part = run(
        Config(**files, policies=["exhaustive"], seeds=[0], budget=80, batch=20),
        TimidBrittle(bank, grammar),
    )
    with pytest.raises(
        InputError, match=r"1 of 81 valid prompts have no answer .* with a budget of 81"
    ):
        load_replay(part.folder)
    config = Config(**files, policies=["exhaustive", "gp"], seeds=[0], budget=81, batch=20)
    runs = run(config, TimidBrittle(bank, grammar), out=tmp_path / "whole")
    assert all(row.chance is not None for row in runs.rows if row.policy == "exhaustive")
    assert all(row.chance is None for row in runs.rows if row.policy == "gp")

    proxy = load_replay(runs.folder)
    land = proxy.landscapes["scripted/brittle"]
    shortcut = np.array(["shortcut" in probe.assignment for probe in probes(bank, grammar)])
    vague = np.array(
        [p.task.id == "machines" and "check" in p.assignment for p in probes(bank, grammar)]
    )
    assert not proxy.audited
    assert not land.blocked.any()
    assert (land.mismatch == (shortcut & ~vague)).all()
    assert (land.wrong == land.mismatch).all()

    audit = ReviewedRuns(runs)
    for item in audit.seal().items:
        wrong = "no" if item.task == "lily-pond" else "yes"
        audit.store.add(
            [
                Decision(
                    reviewer="ana",
                    item=item.id,
                    prompt_valid="yes",
                    extraction_valid="yes",
                    model_wrong=wrong,
                )
            ]
            if item.extracted
            else [
                Decision(
                    reviewer="ana",
                    item=item.id,
                    prompt_valid="yes",
                    extraction_valid="no",
                    artefact="format",
                )
            ]
        )
    audited = load_replay(runs.folder)
    lily = np.array([p.task.id == "lily-pond" for p in probes(bank, grammar)])
    assert audited.audited
    items_by_row = shortcut | vague  # to the reviewer; of the rest only controls were
    assert (
        audited.landscapes["scripted/brittle"].wrong[items_by_row]
        == (shortcut & ~vague & ~lily)[items_by_row]
    ).all()


def test_the_study_has_a_table_of_keys_and_two_of_ratios_for_each_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(probe_policies, "BUDGETS", (6, 9))
    # shapes of tables are looked at, and no interval
    monkeypatch.setattr(sys.modules[arena.__module__], "MIN_LANDSCAPES", 8)
    result = probe_policies.study(replicates=8)
    *tables, overlaps = result.tables
    assert [table.title.split(":")[0] for table in tables] == ["6 queries"] * 3 + ["9 queries"] * 3
    own, shared = (np.mean(list(overlaps.rows[i].here.values())) for i in (0, 1))
    # with the same random numbers both draw mostly the same prompts: 4 in 10 against 1 in 16
    assert own < 0.15 < 0.3 < shared
    assert "over 8 landscapes" in result.tables[0].note
    for table, policies in zip(
        tables, itertools.cycle((len(POLICIES), len(POLICIES) - 1, len(POLICIES) - 1))
    ):
        assert list(table.columns) == list(WORLDS)
        assert len(table.rows) == policies
        assert all(set(row.here) == set(WORLDS) for row in table.rows)
