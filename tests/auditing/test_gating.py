"""Gates: what is new fails, what was known does not, and what could not be seen is no pass."""

from __future__ import annotations

import contextlib
import copy
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

import groundfault
from groundfault import Plan, Report
from groundfault.auditing.gating import COLUMNS, gate
from groundfault.cli import main as door
from groundfault.errors import GroundfaultError, InputError, PlanError, RuleError
from groundfault.render import gate as render

RULES = {"table": "d_table = 1", "long": "words > 400", "odd": "words % 2 = 1"}


def table(seed: int = 0, bad: float = 0.6) -> pl.DataFrame:
    """600 answers of two models: both fail on tables, the second on long texts too."""
    rng = np.random.default_rng(seed)
    size = 600
    on, words = rng.random(size) < 0.4, rng.integers(50, 800, size)
    first = rng.random(size) < np.where(on, bad, 0.1)
    second = rng.random(size) < np.where(on | (words > 400), bad, 0.1)
    part = {"id": [f"q{i:03d}" for i in range(size)], "d_table": on.astype(int), "words": words}
    return pl.concat(
        [
            pl.DataFrame({**part, "model": name, "error": error.astype(int)})
            for name, error in (("one", first), ("two", second))
        ]
    )


def report(
    *models: str,
    compare: tuple[str, str] | None = None,
    frame: pl.DataFrame | None = None,
    modes: bool = False,
) -> dict[str, Any]:
    evidence = groundfault.Evidence.from_table(
        table() if frame is None else frame, id="id", model="model", outcome="error"
    )
    candidates = [groundfault.Candidate(name, rule) for name, rule in RULES.items()]
    evidence = evidence.select_model(*models) if models else evidence
    result = groundfault.audit(
        evidence,
        Plan() if compare else Plan(judge="janus"),
        candidates,
        finders=(),
        compare=compare,
        modes=modes,
        ledger=False,
    )
    return json.loads(result.to_json())


@pytest.fixture(scope="module")
def before() -> dict[str, Any]:
    return report("one")


@pytest.fixture(scope="module")
def after() -> dict[str, Any]:
    return report("two")


def names(mets: Any) -> set[str]:
    return {match.name for match in mets}


def test_what_is_confirmed_fails_the_gate(after: dict[str, Any]) -> None:
    result = gate(after)
    assert not result.passed
    assert names(result.new) == {"table", "long"}
    assert {match.verdict for match in result.new} == {"confirmed"}
    assert not result.compared
    assert gate(after, "confirmed and name = 'odd'").passed


def test_what_was_known_does_not(before: dict[str, Any], after: dict[str, Any]) -> None:
    result = gate(after, baseline=before)
    assert names(result.new) == {"all examples", RULES["long"]}
    assert {match.kind for match in result.new} == {"overall", "mode"}
    assert not result.known, "what failed before as well is no news, and is not called unchanged"
    assert any("only rules that a report stores were tested" in note for note in result.notes)
    back = gate(before, baseline=after)
    assert back.passed
    assert [mode.meaning for mode in back.modes if mode.is_less_frequent] == [RULES["long"]]
    assert gate(after, baseline=after).passed


def test_the_same_rule_under_another_name_is_known(before: dict[str, Any]) -> None:
    renamed = copy.deepcopy(before)
    for finding in renamed["findings"]:
        finding["name"] += " again"
    assert gate(renamed, baseline=before).passed


def test_what_was_better_and_is_now_worse_is_new() -> None:
    turned = table().with_columns(
        pl.when(pl.col("d_table") == 1).then(1 - pl.col("error")).otherwise("error").alias("error")
    )
    earlier, now = report("one", frame=turned), report("one")
    result = gate(now, baseline=earlier)
    (match,) = [match for match in result.new if match.name == RULES["table"]]
    since = match.since
    assert since is not None
    assert since.shared
    assert since.now > 0.5 > since.before
    back = gate(earlier, baseline=now, fail_on="kind = 'mode'")
    assert RULES["table"] not in names(back.new)


def test_an_improvement_does_not_fail_the_gate() -> None:
    """Topic a went from 40 % errors to 10 %, so the others are worse than it now."""
    rng = np.random.default_rng(1)
    size = 900
    topic = rng.choice(["a", "b", "c"], size)
    chance = rng.random(size)
    part = {"id": [f"q{i:03d}" for i in range(size)], "topic": topic}
    old, new = (
        pl.DataFrame({**part, "error": (chance < np.where(topic == "a", rate, 0.25)).astype(int)})
        for rate in (0.4, 0.1)
    )
    earlier, now = (
        groundfault.audit(
            groundfault.Evidence.from_table(each, id="id", outcome="error"), ledger=False
        )
        for each in (old, new)
    )
    assert gate(earlier).new
    result = gate(now, baseline=earlier)
    assert result.passed, result.new
    new_evidence = groundfault.Evidence.from_table(new, id="id", outcome="error")
    result = gate(now, baseline=earlier, evidence=new_evidence)
    assert result.passed, result.new
    assert [mode.meaning for mode in result.modes] == ["topic is a"]
    both = pl.concat([old.with_columns(llm=pl.lit("v1")), new.with_columns(llm=pl.lit("v2"))])
    evidence = groundfault.Evidence.from_table(both, id="id", model="llm", outcome="error")
    compared = groundfault.audit(evidence, compare=("v1", "v2"), ledger=False)
    assert {f.name for f in compared.confirmed} >= {"topic = a"}
    assert gate(compared).passed


def without_units(content: dict[str, Any]) -> dict[str, Any]:
    return {**content, "units": None}


def test_without_shared_examples_the_same_rule_is_compared(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    result = gate(after, baseline=without_units(before))
    assert names(result.new) == {"long"}
    assert result.new[0].since is not None
    assert not result.new[0].since.shared
    assert any("the baseline keeps no loss of each example" in note for note in result.notes)
    other = report("two", frame=table(seed=7).with_columns(id="x" + pl.col("id")))
    assert gate(other, baseline=after).passed, "other examples, the same rates"
    reused = gate(report("two", frame=table(seed=7)), baseline=after)
    assert reused.passed
    assert not reused.modes, "the ids name other examples now"
    assert any("an id names other examples" in note for note in reused.notes)
    assert names(gate(other, baseline=before).new) == {"long"}


def test_what_the_baseline_does_not_have_is_named(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    fewer = without_units(before)
    fewer["findings"] = [f for f in fewer["findings"] if f["name"] != "long"]
    result = gate(after, baseline=fewer)
    assert result.passed
    assert names(result.uncompared) == {"long"}
    assert "1 finding could not be compared" in render.headline(result)
    assert any("check --freeze" in line for line in render.lines(result))
    assert [match["name"] for match in result.to_dict()["uncompared"]] == ["long"]


def test_a_damaged_record_of_units_is_refused(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    for key, value in (("names", "?"), ("names", "AAAA"), ("losses", {"": "AACAPw=="})):
        damaged = {**before, "units": {**before["units"], key: value}}
        with pytest.raises(InputError, match="record of units"):
            gate(after, baseline=damaged)


@pytest.mark.parametrize("level", [0, 1, -0.1, float("nan")])
def test_a_level_lies_between_0_and_1(after: dict[str, Any], level: float) -> None:
    with pytest.raises(PlanError, match="level"):
        gate(after, level=level)


def test_several_models_are_kept_apart(after: dict[str, Any]) -> None:
    both = report("one", "two")
    assert {(match.name, match.outcome) for match in gate(both).new} == {
        ("table", "one"),
        ("table", "two"),
        ("long", "two"),
    }
    assert {match.outcome for match in gate(both, "confirmed and model = 'one'").new} == {"one"}
    assert names(gate(after, "model = 'two' and confirmed").new) == {"table", "long"}


def test_a_comparison_fails_for_what_got_worse() -> None:
    compared = report(compare=("one", "two"))
    assert names(gate(compared).new) == {"long", "odd", "all examples"}
    assert {match.kind for match in gate(compared).new} == {"finding", "overall"}
    assert names(gate(compared, "lift > 0.3").new) == {"long"}
    assert gate(report(compare=("two", "one"))).passed, "the second model is better"
    assert gate(
        report(
            compare=("one", "one!"),
            frame=pl.concat(
                [
                    table().filter(model="one"),
                    table().filter(model="one").with_columns(model=pl.lit("one!")),
                ]
            ),
        )
    ).passed
    with pytest.raises(RuleError, match="one outcome, the change"):
        gate(compared, "confirmed and outcome = 'two fails where one passed'")
    renamed = table().with_columns(pl.col("model").replace({"one": "two", "two": "three"}))
    later = report(compare=("two", "three"), frame=renamed)
    assert gate(later, baseline=compared).passed, "another pair of models, the same changes"
    old = {**compared, "change": None}
    with pytest.raises(InputError, match="by the rule of before"):
        gate(compared, baseline=old)
    with pytest.raises(InputError, match="one of report and baseline compares two models"):
        gate(compared, baseline=report("one"))


def test_a_comparison_is_judged_by_the_modes_of_its_change() -> None:
    """One test at one level: findings are another, and say nothing here."""
    compared = report(compare=("one", "two"), modes=True)
    result = gate(compared)
    assert [match.kind for match in result.new] == ["overall", "mode"]
    assert "words" in result.new[1].name
    mode = next(mode for mode in result.modes if mode.outcome == "worse")
    assert result.new[1].lift == mode.change.difference  # type: ignore[union-attr]
    assert not result.known
    (missed,) = result.missed
    assert missed.endswith("could have been missed.")
    assert gate(compared, must_detect=0.001).blind
    assert gate(report(compare=("two", "one"), modes=True)).passed


def test_a_small_test_set_is_no_pass() -> None:
    small = report("one", frame=table(bad=0.1).filter(pl.col("id") < "q060"))
    assert gate(small).passed
    result = gate(small, must_detect=0.1)
    assert not result.passed
    assert result.blind
    assert not result.new
    least = small["minimum_detectable_lift"]
    assert least is None or least > 0.1
    assert not gate({**small, "minimum_detectable_lift": None}, must_detect=1).passed
    assert gate({**small, "minimum_detectable_lift": 0.1}, must_detect=0.1).passed


def test_numbers_are_those_of_the_units_that_decided(after: dict[str, Any]) -> None:
    (content,) = gate(after, "name = 'long'").new
    finding = next(f for f in after["findings"] if f["name"] == "long")
    assert content.lift == finding["holdout"]["lift"]
    assert [content.low, content.high] == finding["estimate"]["interval"]
    whole = copy.deepcopy(after)
    for each in whole["findings"]:
        each["holdout"] = None
    assert gate(whole, "name = 'long'").new[0].lift == finding["full"]["lift"]


def test_every_column_can_be_read(after: dict[str, Any]) -> None:
    for name in COLUMNS:
        result = gate(after, f"{name} is not null or confirmed")
        assert len(result.new) >= 2, name
    assert f"{', '.join(list(COLUMNS)[:-1])} and {list(COLUMNS)[-1]}" in " ".join(
        str(door_command().help).split()
    ), "the help names every column"


def test_the_baseline_of_another_model_is_remarked_on() -> None:
    both = report("one", "two")
    other = report(frame=table().with_columns(pl.col("model") + "!"))
    with pytest.raises(InputError, match=r"baseline .about one!, two!. share no example"):
        gate(both, baseline=other)
    results = gate(both, baseline={**without_units(both), "judge": "max-t"})
    assert any("judged by max-t" in note for note in results.notes)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("lfit > 0", "no column 'lfit'"),
        ("lift + 1", "not true or false"),
        ("lift", "not true or false"),
        ("name > 3", "cannot evaluate"),
        ("frequency > 0.5", "cannot be decided of the confirmed finding"),
        ("confirmed; select 1", "must be a single true/false expression"),
        ("(select 1) = 1", "which rules may not"),
        ("", "SQL|expression"),
        ("1 = 1", "reads no column"),
    ],
)
def test_rules_that_cannot_decide(after: dict[str, Any], rule: str, message: str) -> None:
    with pytest.raises(RuleError, match=message):
        gate(after, rule)


def test_what_is_not_confirmed_may_be_undecided(after: dict[str, Any]) -> None:
    columns = copy.deepcopy(after)
    for finding in columns["findings"]:
        if finding["verdict"] != "confirmed":
            finding["holdout"], finding["full"] = None, {**finding["full"], "lift": None}
    assert names(gate(columns, "lift > 0").new) == {"table", "long"}


@pytest.mark.parametrize("limit", [0, -1, 1.5, float("nan")])
def test_a_lift_lies_between_0_and_1(after: dict[str, Any], limit: float) -> None:
    with pytest.raises(PlanError, match="must_detect"):
        gate(after, must_detect=limit)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.data())
def test_a_report_that_was_tampered_with_is_refused_or_read(data: st.DataObject) -> None:
    """Whatever a JSON file says in a report's place, an error is one of ours."""
    damaged = copy.deepcopy(TAMPERED)
    place: Any = damaged
    while True:
        key = data.draw(
            st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place)))
        )
        if isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
            place = place[key]
            continue
        place[key] = data.draw(json_values)
        break
    with contextlib.suppress(GroundfaultError):
        json.dumps(
            gate(damaged, "confirmed and lift > 0", baseline=TAMPERED).to_dict(), allow_nan=False
        )
        render.markdown(gate(damaged, "confirmed and lift > 0", baseline=TAMPERED))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("findings", 0, "holdout", "on"), 2**70),
        (("findings", 0, "holdout", "lift"), float("nan")),
        (("findings", 0, "holdout", "lift"), 2**2000),
        (("findings", 0, "name"), "half \ud83d"),
        (("findings", 0, "sentence"), "half \ud83d"),
        (("minimum_detectable_lift",), float("nan")),
        (("schema_version",), 3),
    ],
)
def test_what_no_audit_writes_is_refused(place: tuple[Any, ...], value: Any) -> None:
    damaged = copy.deepcopy(TAMPERED)
    inner: Any = damaged
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(InputError):
        gate(damaged)


STORED = Path(__file__).resolve().parents[1] / "fixtures" / "v0_1_0" / "confirmed" / "report"
TAMPERED: dict[str, Any] = Report.load(STORED).to_dict()


# ---------------------------------------------------------------------------------- files and shell


def door_command() -> Any:
    from groundfault.cli.reports import gate as command

    return command


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setitem(door._FRONT, "gate", ("reports", ""))
    monkeypatch.setattr(sys, "argv", ["groundfault", "gate", *arguments])
    try:
        door.main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_the_command(
    before: dict[str, Any],
    after: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("old.json").write_text(json.dumps(before))
    Path("new").mkdir()
    Path("new/report.json").write_text(json.dumps(after))
    options = ("new", "--baseline", "old.json", "--fail-on", "confirmed and source != 'instrument'")
    assert run(monkeypatch, *options, "--markdown", "gate.md", "--json", "gate.json") == 1
    message = capsys.readouterr().out
    assert f"Change: {RULES['long']}: " in message
    assert "no worse than" not in message
    assert "A rise of failures below" in message
    failed = "Gate failed: 1 new overall change and 1 new failure mode met the condition"
    assert message.startswith(failed)
    verdict = json.loads(Path("gate.json").read_text())
    assert verdict == gate("new", options[-1], baseline="old.json").to_dict() | {
        key: verdict[key] for key in ("new", "known", "gone", "notes", "modes", "missed", "asked")
    }
    summary = Path("gate.md").read_text()
    assert summary.startswith(f"### {failed}")
    assert "| words > 400 | +" in summary.replace("&gt;", ">")
    assert run(monkeypatch, *options, "--json", "-") == 1
    assert json.loads(capsys.readouterr().out) == verdict
    assert run(monkeypatch, "old.json", "--baseline", "new") == 0
    assert f"got better: {RULES['long']}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "content", [None, "", "{", "[1]", '{"schema_version": 2, "findings": []}', "{}", "\ud83d"]
)
def test_files_that_are_no_report(
    content: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "report.json"
    if content is not None:
        file.write_bytes(content.encode("utf-8", "surrogatepass"))
    assert run(monkeypatch, str(file), "--summary", str(tmp_path / "gate.md")) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "gate.md").exists()


def test_text_from_data_is_escaped(after: dict[str, Any]) -> None:
    nasty = copy.deepcopy(after)
    for finding in nasty["findings"]:
        finding["name"] = f"<img src=x> | `{finding['name']}`\n\x1b[31m@everyone"
        finding["sentence"] = "<script>alert(1)</script>\n| a | b |"
    text = render.markdown(gate(nasty, baseline=nasty)) + render.markdown(gate(nasty))
    assert "<script>" not in text
    assert "<img" not in text
    assert "\x1b" not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {5}


def test_many_findings_do_not_fill_a_pull_request(after: dict[str, Any]) -> None:
    many = copy.deepcopy(after)
    (long,) = [f for f in many["findings"] if f["name"] == "long"]
    many["findings"] += [{**long, "name": f"long {i}", "rule": f"words > {i}"} for i in range(60)]
    result = gate(many)
    assert len(result.new) == 62
    text = render.markdown(result)
    assert text.count("\n| ") == 2 + render.MAX_ROWS  # head and rule
    assert "all 62 are in the JSON" in text


# failure modes


@pytest.fixture(scope="module")
def with_modes() -> Report:
    evidence = groundfault.Evidence.from_table(table(), id="id", model="model", outcome="error")
    return groundfault.audit(evidence.select_model("one"), Plan(judge="max-t"), ledger=False)


def test_a_failure_mode_fails_the_gate(with_modes: Report) -> None:
    (mode,) = with_modes.modes
    result = gate(with_modes, "kind = 'mode' and confirmed and lift > 0.3")
    assert not result.passed
    (match,) = result.new
    assert (match.name, match.rule, match.before) == (mode.meaning, mode.rule, None)
    assert mode.meaning != mode.rule
    assert f"| {mode.meaning.replace('_', chr(92) + '_')} | +" in render.markdown(result)
    assert mode.rule not in render.markdown(result)
    assert match.low < match.lift < match.high
    assert "kind = 'mode'" not in gate(with_modes).fail_on
    # modes first: a pull request shows the first twenty
    assert [m.kind for m in gate(with_modes).new] == ["mode", "finding"]
    assert render.headline(gate(with_modes)) == (
        "Gate failed: 1 failure mode and 1 finding met the condition"
    )
    kinds = [match.get("kind") for match in gate(with_modes).to_dict()["new"]]
    assert set(kinds) == {None, "mode"}


def test_a_mode_that_the_baseline_had_as_well_does_not_fail_the_gate(with_modes: Report) -> None:
    rule = "kind = 'mode'"
    assert gate(with_modes, rule, baseline=with_modes).passed
    compared = report(compare=("one", "two"), modes=True)
    again = gate(compared, baseline=compared)
    assert again.passed
    assert again.known
    assert not again.gone


def test_modes_that_a_rule_cannot_decide_are_left_out_and_said(with_modes: Report) -> None:
    result = gate(with_modes, "frequency > 0.5 and kind = 'mode'")
    assert result.passed
    assert result.notes == (
        "the rule cannot be asked of 1 of 1 failure modes, which have no frequency",
    )


def test_the_command_writes_junit_and_markdown(
    before: dict[str, Any],
    after: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from junitparser import JUnitXml

    monkeypatch.chdir(tmp_path)
    Path("old.json").write_text(json.dumps(before))
    Path("new.json").write_text(json.dumps(after))
    files = ("--junit", "gate.xml", "--markdown", "gate.md")
    assert run(monkeypatch, "new.json", "--baseline", "old.json", *files) == 1
    (suite,) = JUnitXml.fromfile("gate.xml")
    assert [case.name for case in suite if case.result] == ["all examples", RULES["long"]]
    assert Path("gate.md").read_text().startswith("### Gate failed: 1 new overall change and 1")
    assert run(monkeypatch, "old.json", "--baseline", "new.json", *files) == 0
    (suite,) = JUnitXml.fromfile("gate.xml")
    assert suite.failures == 0
    assert run(monkeypatch, "new.json", "--baseline", "old.json", "--level", "1e-30") == 0


@pytest.mark.parametrize("judge", ["janus", "max-t"])
def test_rare_errors_do_not_blind_a_gate(judge: str) -> None:
    """A slice of errors that come on top would be seen, though no such lift is possible among
    few."""
    rng = np.random.default_rng(0)
    rare = table().select("id", "d_table", "words").unique("id", maintain_order=True)
    rare = pl.concat([rare.with_columns(id=pl.lit(f"{i}") + pl.col("id")) for i in range(5)])
    rate = np.where(rare["d_table"] == 1, 0.04, 0.01)
    rare = rare.with_columns(error=(rng.random(len(rare)) < rate).astype(int))
    evidence = groundfault.Evidence.from_table(rare, id="id", group="id", outcome="error")
    candidates = [groundfault.Candidate(name, rule) for name, rule in RULES.items()]
    result = groundfault.audit(
        evidence, Plan(judge=judge), candidates, finders=(), modes=False, ledger=False
    )
    assert "too small" not in result.conclusion
    verdict = gate(result, "lift > 2", must_detect=0.25)
    assert verdict.passed
    assert verdict.detectable is not None
    assert gate(result, "lift > 2", must_detect=0.001).blind
