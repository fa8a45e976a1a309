"""`groundfault lab study janus`: the paper's tables beside its numbers, and what is said where
data are lacking.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from groundfault.cli.main import cli, main
from groundfault.errors import InputError, PlanError
from groundfault_lab.commands import study as command
from groundfault_studies import controlled_docs, janus, janus_audits, janus_repeats
from groundfault_studies.tables import PaperRow, PaperStudy, PaperTable, format_value

LONG = {
    "long_chain",
    "long_x_indirect",
    "hard_join_combo",
    "long_x_collision",
    "flat_x_long",
    "long_x_late",
}


@pytest.fixture(scope="module")
def whole(shared: Path) -> PaperStudy:
    """The study on the shared data, with fewer repeats and models than in earnest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(janus_audits, "MODELS", ("gemma-2-2b-it",))
        patch.setattr(janus_repeats, "DRAWN", {200: 100})
        return janus.study(shared, splits=10)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> PaperStudy:
    """The study where there are no data."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("empty"))
        patch.delenv("GROUNDFAULT_SHARED", raising=False)
        return janus.study(splits=10)


def table(study: PaperStudy, start: str) -> dict[str, PaperRow]:
    [columns] = [t for t in study.tables if t.title.startswith(start)]
    return {row.label: row for row in columns.rows}


@pytest.mark.slow
def test_table_one_agrees_with_every_printed_number(whole: PaperStudy) -> None:
    [first] = [t for t in whole.tables if t.title == "Table 1. Controlled docs, reconstructed"]
    assert first.agreement() == (30, 30)
    confirmed = {row.label for row in first.rows if row.here["verdict"] == "confirmed"}
    assert confirmed == {row.label for row in first.rows if row.paper}
    assert len(first.rows) == 10
    lifts = {row.label: row.here["discovery"] for row in first.rows}
    assert lifts["target_late"] == -0.25  # the number behind the text, not what was rounded


@pytest.mark.slow
def test_table_two_stands_beside_the_papers(whole: PaperStudy) -> None:
    rows = table(whole, "Table 2")
    ours = rows["Controlled docs, reconstructed"]
    assert ours.here["papers_rule"] == int(ours.paper["papers_rule"]) == 6
    assert format_value(ours.here["slices"], "rate") == ours.paper["slices"] == "88–95%"
    assert {name for name, row in rows.items() if not row.here} == {"MuSiQue", "LongBench v2"}
    null = rows["Simulated null, 115 x 34"].here
    assert (null["papers_rule"], null["default"]) == (0, 0)
    assert null["slices"][0] > 0.8  # slice search finds pockets where there are none


@pytest.mark.slow
def test_a_small_sample_sees_less_than_the_whole(whole: PaperStudy) -> None:
    rows = table(whole, "Table 2")
    small, large = rows["gsm 150 of 1,319: gemma-2-2b-it"].here, rows["gsm: gemma-2-2b-it"].here
    assert small["n"] == 150
    assert 1300 < large["n"] < 1319  # what could not be parsed is not scored
    assert small["least"] > 2 * large["least"]
    assert large["default"] > small["default"]


@pytest.mark.slow
def test_table_three_removes_safeguards(whole: PaperStudy) -> None:
    for row in table(whole, "Table 3").values():
        if row.here:
            assert row.here["full"] <= row.here["decoy_only"] <= row.here["candidates"]
    null = table(whole, "Table 3")["Simulated null, 115 x 34"].here
    assert null["fixed"] > 15
    assert null["full"] == 0
    ours = table(whole, "Table 3")["Controlled docs, reconstructed"].here
    assert [ours[key] for key in ("candidates", "top_k", "fixed", "decoy_only", "full")] == [
        10,
        5,
        8,
        5,
        5,
    ]


@pytest.mark.slow
def test_splits(whole: PaperStudy) -> None:
    rows = table(whole, "Appendix C")
    ours = rows["Controlled docs, reconstructed"].here
    assert ours["nonempty"] == ours["drawn"] == 1.0
    assert ours["confirmed"][0] > 0.4
    assert ours["confirmed"][1] == 1.0
    assert ours["others"] < 0.2
    assert rows["Simulated null, 115 x 34"].here["nonempty"] < 0.2


@pytest.mark.slow
def test_drawn_decoys_depend_on_their_seed(whole: PaperStudy) -> None:
    rows = table(whole, "Exact floor")
    assert rows["janus-a, exact"].here["six"] == 1.0
    drawn = rows["janus-a, K = 200"].here
    assert 0.5 < drawn["six"] < 0.8
    assert sum(drawn[word] for word in ("six", "five", "four", "three")) == pytest.approx(1.0)
    assert rows["janus-a, exact"].here["floor"] == (0.25, 0.25)
    assert drawn["floor"][0] <= 0.25 < drawn["floor"][1]


def test_without_data_the_planted_weakness_is_found(alone: PaperStudy) -> None:
    assert any("table1_reconstruction.csv does not exist" in what for what in alone.lacking)
    assert any("--shared" in what for what in alone.lacking)
    verdicts = {label: row.here["verdict"] for label, row in table(alone, "Table 1").items()}
    confirmed = {name for name, verdict in verdicts.items() if verdict == "confirmed"}
    assert "long_chain" in confirmed
    assert confirmed <= LONG
    recovered = table(alone, "Planted")
    assert recovered["long_chain"].here["default"] == 1.0
    assert all(recovered[name].here["papers_rule"] > 0.25 for name in LONG)
    assert recovered["any without long_chain"].here["default"] <= 0.1


def test_error_classes_add_up(alone: PaperStudy) -> None:
    rows = table(alone, "Error classes")
    assert sum(row.here["all"] for row in rows.values()) == 160
    assert all(row.here["short"] + row.here["long"] == row.here["all"] for row in rows.values())
    assert rows["vendor"].here["short"] == rows["subsidiary"].here["short"] == 0
    assert rows["vendor"].here["long"] > 10
    errors = table(alone, "Table 2")["Controlled docs, scripted reader"].here["error_rate"]
    assert errors == pytest.approx(1 - rows["correct"].here["all"] / 160)


@pytest.mark.slow
def test_parallel_equals_serial(
    alone: PaperStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    keep = tmp_path / "rows.jsonl"
    assert janus.study(splits=10, jobs=2, keep=keep) == alone
    lines = keep.read_text().splitlines(keepends=True)
    quick_one = next(line for line in lines if "error classes" in line)
    keep.write_text("".join(line for line in lines if line != quick_one) + quick_one[:40])
    messages: list[str] = []
    assert janus.study(splits=10, keep=keep, progress=messages.append) == alone
    assert [message for message in messages if "error classes" in message] == messages[2:]


@pytest.mark.slow
def test_json_and_markdown_hold_everything(whole: PaperStudy, tmp_path: Path) -> None:
    whole.write(tmp_path / "new")
    data = json.loads((tmp_path / "new" / "janus.json").read_text(encoding="utf-8"))
    assert data == json.loads(json.dumps(whole.to_dict()))
    text = (tmp_path / "new" / "janus.md").read_text(encoding="utf-8")
    for part in whole.tables:
        assert f"## {part.title}" in text
    assert text.count("\n| ") == sum(
        2 + sum(len(t.format_row(r)) for r in t.rows) for t in whole.tables
    )


def run(*words: str) -> Any:
    return CliRunner().invoke(cli, ["lab", "study", *words])


def test_the_command_shows_what_it_can_and_says_what_is_lacking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GROUNDFAULT_SHARED", raising=False)
    monkeypatch.setattr(
        sys, "argv", ["groundfault", "lab", "study", "janus", "--splits", "2", "--out", "here"]
    )
    with pytest.raises(SystemExit) as result:
        main()
    out, err = capsys.readouterr()
    assert result.value.code == 2
    assert "Planted and recovered" in out
    *steps, error = err.splitlines()
    assert "answering generated packets" in steps
    assert error.startswith("error: not everything was computed: ")
    assert json.loads((tmp_path / "here" / "janus.json").read_text())["lacking"]


def test_json_on_standard_output_is_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("janus", "--splits", "2", "--json", "-")
    assert json.loads(result.stdout)["study"] == "janus"


@pytest.mark.slow
def test_tables_fit_eighty_columns(whole: PaperStudy, capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    from groundfault.render.terminal import show

    show(whole.make_page(), Console(width=80))
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "claude-3-haiku-20240307" in out
    assert "…" not in out
    assert {"long_chain", "more"} <= set(out.split())  # the last column is wrapped, not cut


def test_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert isinstance(run("nope").exception, PlanError)
    for words in (["--shared", "nowhere"], ["--out", "file"], ["--json", "."]):
        result = run("janus", *words)
        assert isinstance(result.exception, InputError), words
        assert result.output == ""
    monkeypatch.setenv("GROUNDFAULT_SHARED", "nowhere")
    assert "no folder nowhere" in str(run("janus").exception)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_new_study_is_a_function_and_takes_only_its_own_options(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(command.STUDIES.built_in, "small", f"{__name__}:small_study")
    assert "Small: 3" in run("small", "--shared", "3").stdout
    with pytest.raises(PlanError, match="does not use --splits"):
        raise run("small", "--splits", "5").exception


def small_study(shared: str, *, progress: Any) -> PaperStudy:
    progress("nothing to do")
    return PaperStudy("small", f"Small: {shared}", "nobody", {}, ())


def test_numbers_are_printed_as_papers_round_them() -> None:
    assert format_value(0.575, "lift") == "+0.58"
    assert format_value(-0.275, "lift") == "−0.28"
    assert format_value(0.075, "rate") == "7.5%"
    assert format_value((0.875, 0.95), "rate") == "88–95%"
    assert format_value((0.5, 0.5), "rate") == "50%"
    assert format_value(None, "count") == "–"
    assert format_value(1319, "count") == "1,319"
    assert format_value("a\x1b[31mb", "text") == "a\ufffd[31mb"


def test_agreement_counts_what_differs() -> None:
    rows = (
        PaperRow("a", {"x": 0.10, "y": 2}, {"x": "+0.10", "y": "3"}),
        PaperRow("b", {}, {"x": "+0.20"}),
        PaperRow("<b|c>", {"x": 0.2, "y": 1}),
    )
    small = PaperTable("T", "a note", {"x": ("x", "lift"), "y": ("y", "count")}, rows)
    assert small.agreement() == (1, 2)
    assert [len(small.format_row(row)) for row in rows] == [2, 1, 1]
    text = PaperStudy("s", "S", "nobody", {}, (small,)).to_markdown()
    assert "<b|c>" not in text
    assert "b (paper)" in text
    assert text.count("a note") == 1


def test_a_model_of_ones_own_answers_packets_from_the_shell(tmp_path: Path) -> None:
    """A recorded model stops at the vendor on long chains; the default names that."""
    packets = controlled_docs.generate(rows=8)
    said = tmp_path / "said.jsonl"
    replies = (
        {"prompt": one.prompt, "response": one.vendor if one.long_chain else one.answer}
        for one in packets
    )
    said.write_text("\n".join(map(json.dumps, replies)))
    call = ["study", "janus", "--quick", "--splits", "1", "--model", f"replay:{said}"]
    call += ["--sizes", "8", "--shared", str(tmp_path), "--out", str(tmp_path / "out")]
    CliRunner().invoke(cli, ["lab", *call])
    result = json.loads((tmp_path / "out" / "janus.json").read_text())
    title = f"Table 1. Controlled docs, replay:{said}"
    (own,) = (table for table in result["tables"] if table["title"] == title)
    default = {row["label"]: row["here"]["default"] for row in own["rows"]}
    assert default["long_chain"] == "confirmed"
    assert default["target_late"] != "confirmed"
    assert (tmp_path / "out" / "janus.calls.db").exists()
