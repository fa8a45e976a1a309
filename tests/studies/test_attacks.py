"""Attacks: what an attack must say, that rates are added up and judged, and that each runs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from groundfault.cli.main import cli
from groundfault.errors import PlanError
from groundfault_studies.attacks import comparisons
from groundfault_studies.attacks.attack import Attack
from groundfault_studies.attacks.study import (
    collect_attacks,
    judge_promise,
    make_tables,
    measures,
    study,
    word_promise,
)

# the first attack of each topic runs before every commit, the others every night
ALL = [
    pytest.param(attack, id=attack.label, marks=[pytest.mark.slow] if number else [])
    for attacks in collect_attacks().values()
    for number, attack in enumerate(attacks)
]
COIN = Attack(
    point=99,
    name="a third",
    world="Every third seed is hit.",
    promise="No more than half are.",
    before=".67",
    statistic="rate of seeds that are hit",
    trial=lambda seed: seed % 3 == 0,
    at_most=0.5,
    replicates=24,
)


@pytest.fixture
def coin(monkeypatch: pytest.MonkeyPatch) -> Attack:
    monkeypatch.setattr(comparisons, "ATTACKS", (COIN,))
    return COIN


@pytest.mark.parametrize("attack", ALL)
def test_every_attack_runs(attack: Attack) -> None:
    assert attack.trial(0) in (True, False)


@pytest.mark.parametrize(
    "change",
    [
        {"name": " "},
        {"before": ""},
        {"point": 0},
        {"replicates": 0},
        {"at_most": None},
        {"at_most": 1.2},
        {"at_least": 0.6},
        {"at_least": -0.1},
    ],
)
def test_an_attack_says_what_is_promised(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"words|at least|at_most|rate"):
        replace(COIN, **change)  # type: ignore[arg-type]


def test_a_promise_is_judged_by_the_whole_interval() -> None:
    assert judge_promise(COIN, 0.2, 0.5) == "holds"
    assert judge_promise(COIN, 0.2, 0.51) == "not contradicted"
    assert judge_promise(COIN, 0.51, 0.6) == "broken"
    power = replace(COIN, at_most=None, at_least=0.9)
    assert judge_promise(power, 0.9, 1) == "holds"
    assert judge_promise(power, 0.8, 0.95) == "not contradicted"
    assert judge_promise(power, 0.8, 0.89) == "broken"
    assert (word_promise(COIN), word_promise(power)) == ("≤ 50%", "≥ 90%")


def test_a_rate_has_its_exact_interval() -> None:
    # 0 of 20: the upper end is 1 - .025^(1/20)
    assert measures(COIN, 0, 20)["interval"] == f"0.0% to {1 - 0.025 ** (1 / 20):.1%}"
    assert measures(COIN, 0, 20)["verdict"] == "holds"
    assert "rate" not in measures(COIN, 0, 0)


def test_rows_of_one_attack_are_added_up() -> None:
    rows = [{"attack": COIN.label, "hits": hits, "trials": 10} for hits in (4, 3)]
    table, worlds = make_tables(rows, {"comparisons": (COIN,), "judges": ()})
    assert table.rows[0].here["rate"] == 0.35
    assert table.rows[0].here["trials"] == 20
    assert worlds.rows[0].here["world"] == COIN.world


def test_the_study_resumes_and_selects(coin: Attack, tmp_path: Path) -> None:
    keep = tmp_path / "rows.jsonl"
    first = study(only=[99], keep=keep)
    assert first.tables[0].rows[0].here["rate"] == pytest.approx(1 / 3)
    assert first.tables[0].rows[0].here["trials"] == 24
    lines = keep.read_text().splitlines()
    assert len(lines) == 3
    keep.write_text(lines[0] + "\n")
    # seeds 0 to 9: hits at 0, 3, 6, 9
    stored = study(only=[99], keep=keep, stored=True).tables[0].rows[0].here
    assert (stored["rate"], stored["trials"]) == (0.4, 10)
    assert study(only=[99], keep=keep).tables == first.tables
    assert study(only=[99], replicates=6).tables[0].rows[0].here["trials"] == 6
    with pytest.raises(PlanError, match="no attack is on point 77"):
        study(only=[99, 77])


def test_the_card_names_tests_that_are_there() -> None:
    root = Path(__file__).resolve().parents[2]
    card = (root / "docs" / "cards" / "attacks.md").read_text(encoding="utf-8")
    names = re.findall(r"`(tests/\S+\.py)::(test_\w+)`", card)
    assert len(names) > 15
    lacking = [
        name
        for file, name in names
        if f"def {name}(" not in (root / file).read_text(encoding="utf-8")
    ]
    assert lacking == []


def test_two_attacks_of_one_label_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparisons, "ATTACKS", (COIN, COIN))
    with pytest.raises(ValueError, match=r"two attacks are called .99\. a third"):
        collect_attacks()


def test_the_command_writes_the_tables(coin: Attack, tmp_path: Path) -> None:
    words = ["lab", "study", "attacks", "--only", "99", "--replicates", "5", "--out", str(tmp_path)]
    run = CliRunner().invoke(cli, words)
    assert run.exit_code == 0, run.output
    written = json.loads((tmp_path / "attacks.json").read_text())
    assert written["tables"][0]["rows"][0]["here"]["trials"] == 5
    assert "99. a third" in (tmp_path / "attacks.md").read_text()
    assert (tmp_path / "attacks.rows.jsonl").exists()
