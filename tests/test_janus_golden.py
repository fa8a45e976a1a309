"""Golden audits: every number to 1e-9 and every set, through the front door and through the
shell.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import groundfault
from groundfault.cli.main import cli
from groundfault.finders.columns import Declared

CASES = ("table1_reconstruction", "null_115x34", "planted_500x20_ties")


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, shared: Path) -> tuple[Path, dict[str, Any]]:
    path = shared / "janus_public" / f"{request.param}.csv"
    return path, json.loads(path.with_suffix(".json").read_text())


def settings(config: dict[str, Any]) -> dict[str, Any]:
    names = (
        "q",
        "min_lift",
        "prevalence",
        "min_on",
        "min_off",
        "hold_min_on",
        "hold_min_off",
        "min_on_total",
    )
    given = {name: config[name] for name in names if name in config}
    return {**given, "prevalence": tuple(config["prevalence"]), "alpha": config["q"]}


def run(path: Path, config: dict[str, Any], judge: str, **more: Any) -> groundfault.Report:
    evidence = groundfault.Evidence.from_table(
        path, id="item_id", outcome=config["outcome"], split="split", group=config.get("group")
    )
    plan = groundfault.Plan(judge=judge, **settings(config), **more)
    return groundfault.audit(evidence, plan, finders=[Declared(("d__*",))])


def names(report: groundfault.Report, *verdicts: str) -> set[str]:
    return {f.name for f in report.findings if f.verdict in verdicts}


def close(actual: float | None, expected: float) -> bool:
    return actual is not None and abs(actual - expected) < 1e-9


def test_procedure_a_matches_every_number(case: tuple[Path, dict[str, Any]]) -> None:
    path, golden = case
    expected = golden["expected"]
    report = run(path, golden["config"], "janus-a")
    findings = {f.name: f for f in report.findings}
    assert len(findings) == expected["n_library"]
    assert report.n_discovery == expected["units_disc"]
    for row in expected["descriptors"]:
        finding = findings[row["name"]]
        unit = expected["denominator"]
        for part, cell in (("disc", finding.discovery), ("hold", finding.holdout)):
            assert cell is not None
            assert (cell.on, cell.off) == (row[f"n_on_{part}"], row[f"n_off_{part}"])
            assert close(cell.on_errors, row[f"sum_on_{part}"] / unit)
            assert close(cell.off_errors, row[f"sum_off_{part}"] / unit)
        if not row["eligible"]:
            assert finding.verdict == "untestable"
            assert finding.reason.split(":")[0].split(", ") != [""]
            assert set(finding.reason.split(":")[0].split(", ")) == set(row["reasons"])
            continue
        assert finding.discovery.lift == float(Fraction(row["lift_disc_frac"]))
        assert close(finding.discovery.p, row["p_own"])
        assert close(finding.decoys, row["pooled_tail_sum"])
        assert finding.holdout is not None
        assert close(finding.holdout.p, row["p_hold"])
        if row["p_hold_holm"] is None:
            assert finding.holdout.p_adjusted is None
        else:
            assert close(finding.holdout.p_adjusted, row["p_hold_holm"])
    assert names(report, "confirmed", "not_replicated") == set(expected["survivors"])
    assert names(report, "confirmed") == set(expected["confirmed"])
    exactly = {
        f.name for f in report.confirmed if f.holdout and (f.holdout.p_adjusted or 1) <= 0.10
    }
    assert exactly == set(expected["confirmed_exact"])
    assert set(report.baselines.fixed_lift) == set(expected["survivors_fixed"])


def test_the_curve_and_the_floor(case: tuple[Path, dict[str, Any]]) -> None:
    path, golden = case
    floor = run(path, golden["config"], "janus-a").floor
    assert floor.threshold == golden["expected"]["tau"]
    assert len(floor.curve) == len(golden["expected"]["fdp_curve"])
    for row, expected in zip(floor.curve, golden["expected"]["fdp_curve"], strict=True):
        assert row.threshold == expected["tau"]
        assert row.real == expected["R"]
        assert close(row.decoy, expected["D_scaled"])
        assert close(row.fdp, expected["fdp"])


def test_janus_lite(case: tuple[Path, dict[str, Any]]) -> None:
    path, golden = case
    report = run(path, golden["config"], "janus-lite")
    assert report.floor.threshold == golden["expected"]["lite_floor"]
    assert names(report, "confirmed", "not_replicated") == set(golden["expected"]["survivors_lite"])
    assert names(report, "confirmed") == set(golden["expected"]["confirmed_lite"])


def test_benjamini_hochberg_on_discovery(case: tuple[Path, dict[str, Any]]) -> None:
    """Exact p-values of the discovery units alone, through the judge that corrects them."""
    import polars as pl

    path, golden = case
    config = golden["config"]
    frame = pl.read_csv(path).filter(pl.col("split") == "discovery").drop("split")
    evidence = groundfault.Evidence.from_table(frame, id="item_id", outcome=config["outcome"])
    given = {k: v for k, v in settings(config).items() if k not in ("min_on_total", "min_lift")}
    eligible = [d["name"] for d in golden["expected"]["descriptors"] if d["eligible"]]
    columns = tuple(f"d__{name}" for name in eligible)
    report = groundfault.audit(
        evidence,
        groundfault.Plan(judge="bh", **{**given, "prevalence": (0, 1)}),
        finders=[Declared(columns)],
    )
    assert {n.removeprefix("d__") for n in names(report, "confirmed")} == set(
        golden["expected"]["survivors_bh"]
    )


def test_table_one_is_the_papers(shared: Path) -> None:
    golden = json.loads((shared / "janus_public" / "table1_reconstruction.json").read_text())
    report = run(shared / "janus_public" / "table1_reconstruction.csv", golden["config"], "janus")
    printed = {
        "long_chain": (0.58, 0.67, 0.48),
        "long_x_indirect": (0.48, 0.55, 0.42),
        "hard_join_combo": (0.39, 0.44, 0.34),
        "long_x_collision": (0.35, 0.27, 0.42),
        "flat_x_long": (0.28, 0.27, 0.30),
        "target_late": (-0.28, -0.25, -0.30),
    }
    assert names(report, "confirmed") == set(printed)
    for finding in report.confirmed:
        lifts = (finding.full.lift, finding.discovery.lift, finding.holdout.lift)
        assert all(
            abs(lift - value) < 0.0051
            for lift, value in zip(lifts, printed[finding.name], strict=True)
        )


def test_drawn_decoys_approach_the_exact_floor(shared: Path) -> None:
    golden = json.loads((shared / "janus_public" / "table1_reconstruction.json").read_text())
    path = shared / "janus_public" / "table1_reconstruction.csv"
    exact = run(path, golden["config"], "janus-a").floor.curve
    drawn = run(path, golden["config"], "janus-a", decoys=40_000).floor.curve
    assert max(abs(a.decoy - b.decoy) for a, b in zip(exact, drawn, strict=True)) < 0.2
    assert any(a.decoy != b.decoy for a, b in zip(exact, drawn, strict=True))


def test_the_shell_gives_the_same(case: tuple[Path, dict[str, Any]]) -> None:
    path, golden = case
    config = golden["config"]
    words = [
        "audit",
        str(path),
        "--id",
        "item_id",
        "--outcome",
        config["outcome"],
        "--split",
        "split",
    ]
    words += [
        "--declare",
        "d__*",
        "--judge",
        "janus-a",
        "--q",
        config["q"],
        "--min-lift",
        config["min_lift"],
    ]
    words += ["--prevalence", *config["prevalence"], "--no-ledger", "--json", "-"]
    for name in ("min_on", "min_off", "hold_min_on", "hold_min_off", "min_on_total"):
        if name in config:
            words += [f"--{name.replace('_', '-')}", str(config[name])]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)
    assert shown == json.loads(run(path, config, "janus-a").to_json()) | {
        "manifest": shown["manifest"]
    }
    assert {f["name"] for f in shown["findings"] if f["verdict"] == "confirmed"} == set(
        golden["expected"]["confirmed"]
    )
