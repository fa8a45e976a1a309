"""The form of report.json: typed, frozen, published as a JSON Schema, and true of every report."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from groundfault import Plan, Report
from groundfault.auditing.report_schema import PlanSettings, ReportData, to_plain

ROOT = Path(__file__).resolve().parents[2]
STORED = ROOT / "tests" / "fixtures" / "v0_1_0"
PLACES = sorted(
    path.parent for path in STORED.rglob("report.json") if (path.parent / "library.json").exists()
)


def load_generator() -> ModuleType:
    """docs/generate.py, which writes the schemas."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = load_generator()


@pytest.mark.parametrize("name", sorted(generate.SCHEMAS))
def test_published_schemas_are_up_to_date(name: str) -> None:
    path = ROOT / "docs" / "reference" / "schemas" / name
    text = path.read_text(encoding="utf-8")
    assert text == generate.json_schema(generate.SCHEMAS[name]), "run python docs/generate.py"
    Draft202012Validator.check_schema(json.loads(text))


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    path = ROOT / "docs" / "reference" / "schemas" / "report.json"
    return Draft202012Validator(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("place", PLACES, ids=lambda path: path.relative_to(STORED).as_posix())
def test_stored_reports_are_valid_after_conversion(
    place: Path, validator: Draft202012Validator
) -> None:
    content = json.loads(Report.load(place).to_json())
    assert [error.message for error in validator.iter_errors(content)] == []


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [(None, "error_rate", "high"), ("hashes", "extra", "x"), ("manifest", "sources", 3)],
)
def test_what_is_no_report_is_invalid(
    section: str | None, key: str, value: Any, validator: Draft202012Validator
) -> None:
    content = json.loads(Report.load(PLACES[0]).to_json())
    (content if section is None else content[section])[key] = value
    assert not validator.is_valid(content)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(content, ReportData)


@pytest.mark.parametrize(
    "plan",
    [
        Plan(),
        Plan(judge="max-t", prevalence=("0.05", "0.5"), min_lift="0.2", decoys=9, hold_min_on=3),
        Plan(holdout_axis="time", holdout_column="date"),
    ],
)
def test_settings_of_a_plan_keep_its_seal(plan: Plan) -> None:
    settings = msgspec.convert(plan.settings, PlanSettings)
    assert to_plain(settings) == json.loads(json.dumps(plan.settings))
    assert settings.to_plan().seal() == plan.seal()
