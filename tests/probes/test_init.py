"""``probe init``: the bank, grammar and config that it writes, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from groundfault.cli.main import probe
from groundfault.errors import GroundfaultError, InputError
from groundfault.probes import Bank, ComponentGroup, Grammar, Option, Task
from groundfault.probes.bank.rendering import probes, render


def run(*args: Any) -> Result:
    return CliRunner().invoke(probe, [str(a) for a in args])


def test_init_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "grammar.toml").write_text("mine")
    content = run("init", tmp_path)
    assert isinstance(content.exception, GroundfaultError)
    assert "grammar.toml exists already" in str(content.exception)
    assert [p.name for p in tmp_path.iterdir()] == ["grammar.toml"]


# ------------------------------------------------------------------------------- banks of one's own


def table(folder: Path) -> Path:
    place = folder / "results.csv"
    place.write_text(
        "no,ask,key,kind\n01,What is 2 + 2?,4,sum\n01,What is 2 + 2?,4,sum\n02,Is 7 "
        "prime?,yes,fact\n"
    )
    return place


def test_a_bank_of_a_table_has_no_probes_that_its_tasks_cannot_fill(tmp_path: Path) -> None:
    home = tmp_path / "b"
    content = run(
        "init",
        home,
        "--from",
        table(tmp_path),
        "--question",
        "ask",
        "--target",
        "key",
        "--family",
        "kind",
    )
    assert content.exit_code == 0, content.exception
    bank = Bank.load(home / "bank.toml")
    assert (bank.name, [(task.id, task.family, task.answer, task.rule) for task in bank]) == (
        "results",
        [("1", "sum", "4", "integer"), ("2", "fact", "yes", "yes_no")],
    )
    prompts = list(probes(bank, Grammar.load(home / "grammar.toml")))
    assert (len(prompts), [prompt.key for prompt in prompts if prompt.errors]) == (36, [])
    assert (home / "config.toml").exists()
    run(
        "init",
        tmp_path / "c",
        "--from",
        table(tmp_path),
        "--question",
        "ask",
        "--target",
        "key",
        "--id",
        "no",
    )
    assert [task.id for task in Bank.load(tmp_path / "c" / "bank.toml")] == ["01", "02"]


def test_a_bank_of_a_log_needs_no_columns(tmp_path: Path) -> None:
    rows = [
        {
            "doc_id": n,
            "doc": {},
            "target": str(n),
            "arguments": [[f"What is {n}?", ""]],
            "resps": [["1"]],
            "filtered_resps": ["1"],
            "filter": "none",
            "metrics": ["exact_match"],
            "exact_match": 1.0,
        }
        for n in range(3)
    ]
    place = tmp_path / "samples_sums_2024-01-01T00-00-00.000000.jsonl"
    place.write_text("".join(json.dumps(row) + "\n" for row in rows))
    content = run("init", tmp_path / "b", "--from", place)
    assert content.exit_code == 0, content.exception
    assert [(task.question, task.answer) for task in Bank.load(tmp_path / "b" / "bank.toml")] == [
        (f"What is {n}?", str(n)) for n in range(3)
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--question", "ask"], "holds the target: --target COL"),
        ([], "holds the question: --question COL"),
        (
            ["--question", "ask", "--target", "keys"],
            "no column 'keys'; name those with question and target (there",
        ),
        (["--question", "ask", "--target", "key", "--rule", "close"], "'close'; there are exact"),
        (
            ["--question", "ask", "--target", "key", "--rule", "integer"],
            "task '2': the answer 'yes' must be a number",
        ),
        (["--question", "ask", "--target", "key", "--generated", 3], "leave one of them out"),
        (
            ["--question", "kind", "--target", "key", "--id", "kind", "--family", "none"],
            "no column 'none'",
        ),
    ],
)
def test_a_table_that_makes_no_bank(tmp_path: Path, arguments: list[str], message: str) -> None:
    content = run("init", tmp_path / "b", "--from", table(tmp_path), *arguments)
    assert isinstance(content.exception, GroundfaultError)
    assert message in str(content.exception)
    assert not (tmp_path / "b").exists()


def test_columns_without_a_table() -> None:
    assert "--rule is about --from" in str(run("init", "nowhere", "--rule", "exact").exception)


def test_a_group_may_reword_the_question() -> None:
    same = ("facts", "operations", "relations", "answer")
    wording = ComponentGroup(
        "wording", (Option("plain", "{question}"), Option("low", "{low}")), same
    )
    grammar = Grammar("g", (wording,), layout="{wording}\n\nWrite only the number.")
    task = Task(id="t", question="Is 5 MORE than 4?", answer="5", rule="integer")
    bank = Bank("b", (replace(task, slots={"low": "is 5 more than 4?"}), replace(task, id="u")))
    plain, low = (render(bank, grammar, "t", (name,)) for name in ("plain", "low"))
    assert plain.prompt.startswith("Is 5 MORE than 4?\n\nWrite")
    # the question's own numbers give nothing away
    assert (low.prompt.split("\n")[0], plain.errors, low.errors) == ("is 5 more than 4?", (), ())
    assert render(bank, grammar, "u", ("low",)).errors == (
        "the task has no low, which wording = low needs",
    )
    with pytest.raises(InputError, match=r"the layout must hold \{wording\}, each once"):
        Grammar("g", (wording,), layout="{question}{wording}")
