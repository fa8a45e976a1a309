"""JSON of any shape, given to whatever loads a document: it is loaded, or refused in one line.

The documents are stored results of groundfault 0.1.0 with something else in one place: a value of
another type, a key more or less, nesting, numbers that no float holds. Logs of other tools are
damaged in the same way in ``tests/readers/test_damaged_logs.py``.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from damage import VALUES, places
from hypothesis import HealthCheck, given, settings, strategies as st
from profiles import count_examples

from groundfault import Evidence, Library, Report, gate, models
from groundfault.base.ledger import Ledger
from groundfault.errors import GroundfaultError
from groundfault.finders.columns import read_candidates
from groundfault.models import Call, Question, Record, Response
from groundfault.probes import Bank, Config, Grammar, Runs
from groundfault.readers.mapped import Mapped
from groundfault.review import Item, Store, sheets
from groundfault.review.session import DECIDED
from groundfault.review.sheets import make_task
from groundfault.sequential.certificate import Certificate
from groundfault.sequential.eprocess import EProcess
from groundfault.sequential.plan import SequentialPlan
from groundfault.sequential.stored_result import Confirmation
from groundfault_lab.improve.active import Learning
from groundfault_lab.probes import release
from groundfault_lab.probes.arena import load_replay
from groundfault_lab.probes.summary import ProbeSummary, ProbeTables
from groundfault_lab.taxonomy import Taxonomy
from groundfault_lab.taxonomy.use.diagnosis import Diagnosis
from groundfault_lab.taxonomy.words.labelling import Labelling
from groundfault_lab.testing.card import Card

STORED = Path(__file__).parents[1] / "fixtures" / "v0_1_0"
FEW = settings(
    max_examples=count_examples(400, fast=6),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
DEEP: Any = []
for _ in range(300):
    DEEP = [DEEP]
ODD = (10**400, 2**70, -1, 1e308, float("nan"), float("inf"), "\ud800", "2026", {"a": 1}, DEEP)
ITEM = Item("bat", "How much?", "5", "10", "Answer: 10", question="How much?")
ANSWERS = {"prompt_valid": "yes", "extraction_valid": "yes", "model_wrong": "no", "note": "n"}
TRAJECTORY = "probe/runs/replay-said.jsonl-37903c0e2ac9/gp/seed-0/trajectory.jsonl"

Load = Callable[[Path], object]


def load_text(load: Callable[[str], object], path: Path) -> object:
    return load(path.read_text(errors="replace"))


def load_labels(path: Path) -> object:
    return Labelling.load(path.parent, Taxonomy.load(path.parent))


def load_package(path: Path) -> object:
    """A package whose index was made to fit the edited file."""
    index = json.loads((path.parent / release.INDEX).read_text())
    index["files"][path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    (path.parent / release.INDEX).write_text(json.dumps(index))
    return release.check(path.parent, lambda _: "")


LOADERS: dict[str, tuple[str, Load]] = {
    "report": ("frozen/report/report.json", Report.load),
    "report as a page": ("fitted/report/report.json", lambda p: Report.load(p).to_markdown()),
    "gate": ("frozen/report/report.json", lambda p: gate(p.parent)),
    "baseline": ("models/one/report.json", lambda p: gate(STORED / "models/one", baseline=p)),
    "library": ("frozen/library.json", Library.load),
    "library of fitted columns": ("fitted/report/library.json", Library.load),
    "candidates": ("graded/candidates.toml", read_candidates),
    "card": ("frozen/card.json", partial(load_text, Card.from_json)),
    "learning": ("frozen/learning.json", partial(load_text, Learning.from_json)),
    "e-process": ("sequential/eprocess.json", partial(load_text, EProcess.from_json)),
    "confirmation": ("sequential/confirm.json", Confirmation.load),
    "certificate": ("sequential/certificate.json", Certificate.load),
    "certificate of a policy": ("sequential/gp.certificate.json", Certificate.load),
    "taxonomy": ("taxonomy/fit/taxonomy.json", lambda p: Taxonomy.load(p.parent)),
    "labels": ("taxonomy/fit/labels.json", load_labels),
    "diagnosis": ("taxonomy/diagnosis.json", Diagnosis.load),
    "probe report": ("probe/report.json", ProbeSummary.load),
    "probe tables": ("probe/package/tables.json", ProbeTables.load),
    "config": ("probe/config.toml", Config.load),
    "bank": ("probe/bank.toml", Bank.load),
    "grammar": ("probe/grammar.toml", Grammar.load),
    "manifest of a run": ("probe/runs/manifest.json", lambda p: Runs(p.parent).manifest),
    "trajectory": (TRAJECTORY, lambda p: Runs(p.parents[3]).rows),
    "package: index": ("probe/package/MANIFEST.json", lambda p: release.check(p.parent, str)),
    "package: config": ("probe/package/config.json", load_package),
    "package: rows": ("probe/package/rows.jsonl", load_package),
    "package: prompts": ("probe/package/prompts.jsonl", load_package),
    "package: decisions": ("probe/package/decisions.jsonl", load_package),
    "replayed answers": ("probe/said.jsonl", lambda p: models.get(f"replay:{p}")),
    "imported evidence": (
        "imported/evidence/evidence.json",
        lambda p: Evidence.from_logs(p.parent),
    ),
    "mapping": ("imported/map.toml", Mapped.from_file),
}


# ---------------------------------------------------------------------------------- documents


def read_document(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".toml":
        return tomllib.loads(text)
    return (
        [json.loads(x) for x in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)
    )


def write_document(path: Path, content: Any) -> None:
    if path.suffix == ".toml":
        lines = [f"{json.dumps(key)} = {to_toml(value)}" for key, value in content.items()]
    else:
        lines = [json.dumps(each) for each in (content if path.suffix == ".jsonl" else [content])]
    path.write_text("".join(line + "\n" for line in lines))


def to_toml(value: Any) -> str:
    """A value in one line of TOML, which has no null."""
    match value:
        case dict():
            pairs = (f"{json.dumps(k)} = {to_toml(v)}" for k, v in value.items())
            return f"{{{', '.join(pairs)}}}"
        case list():
            return f"[{', '.join(map(to_toml, value))}]"
        case float():
            return repr(value)
        case _:
            return json.dumps("" if value is None else value)


@st.composite
def changed(draw: st.DrawFn, document: Any) -> Any:
    """A copy of a document with one change at any place of it."""
    variant = copy.deepcopy(document)
    at, key = draw(st.sampled_from(list(places(variant))))
    how = draw(st.sampled_from(["replace", "replace", "odd", "drop", "add", "nest"]))
    if how == "drop":
        del at[key]
    elif how == "add" and isinstance(at, dict):
        at[draw(st.text(max_size=5))] = draw(VALUES)
    elif how == "nest":
        at[key] = draw(st.sampled_from([[at[key]], {"a": at[key]}]))
    else:
        at[key] = draw(st.sampled_from(ODD)) if how == "odd" else draw(VALUES)
    return variant


def require_own_error(load: Callable[[], object]) -> None:
    message = ""
    try:
        load()
    except GroundfaultError as error:
        message = str(error)
    assert "\n" not in message


@pytest.fixture(scope="module", params=LOADERS)
def stored(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, Any, Load]]:
    """A stored file in a copy of its folder, what it holds, and what loads it."""
    name, load = LOADERS[request.param]
    home = tmp_path_factory.mktemp("stored")
    top = name.partition("/")[0]
    shutil.copytree(STORED / top, home / top, ignore=shutil.ignore_patterns("*.html", "unfinished"))
    yield home / name, read_document(home / name), load
    shutil.rmtree(home)


@FEW
@given(data=st.data())
def test_a_document_of_other_types_is_loaded_or_refused(
    stored: tuple[Path, Any, Load], data: st.DataObject
) -> None:
    path, document, load = stored
    write_document(path, data.draw(changed(document)))
    require_own_error(partial(load, path))


WHOLE = {
    "nothing": "",
    "null": "null",
    "a list": "[]",
    "an object": "{}",
    "NaN": "NaN",
    "deep lists": "[" * 100_000 + "]" * 100_000,
    "deep objects": '{"a":' * 50_000 + "1" + "}" * 50_000,
    "digits": "1" * 6000,
    "not UTF-8": "\udcff",
}


def test_another_document_altogether_is_loaded_or_refused(stored: tuple[Path, Any, Load]) -> None:
    path, document, load = stored
    write_document(path, document)
    load(path)  # what is damaged above can be loaded
    for text in WHOLE.values():
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        require_own_error(partial(load, path))


FIRST_KEY = re.compile(r'\{\s*("(?:[^"\\]|\\.)*"):')


def test_a_key_that_stands_twice_is_an_error(stored: tuple[Path, Any, Load]) -> None:
    path, document, load = stored
    if path.name == "said.jsonl":
        pytest.skip("answers that others wrote are read like logs: see test_duplicate_keys.py")
    if path.suffix == ".toml":
        key = next(iter(document))
        path.write_text(f"{key} = 1\n{key} = 1\n")
    else:
        parts = document if path.suffix == ".jsonl" else [document]
        text = "".join(json.dumps(part) + "\n" for part in parts)
        path.write_text(FIRST_KEY.sub(r"{\1: null, \1:", text, count=1))
    try:
        result = load(path)
    except GroundfaultError:
        return
    finally:
        write_document(path, document)
    assert getattr(result, "problems", ()), "a package says what is wrong with it"


def test_a_line_break_in_a_library_leaves_the_message_one_line(tmp_path: Path) -> None:
    content = json.loads((STORED / "fitted/report/library.json").read_text())
    for candidate in content["candidates"]:
        candidate["\n"] = 1
    (tmp_path / "library.json").write_text(json.dumps(content))
    with pytest.raises(GroundfaultError) as refused:
        Library.load(tmp_path / "library.json")
    assert "\n" not in str(refused.value)


# ------------------------------------------------------------------------------ databases, sheets


@FEW
@given(decision=changed({"reviewer": "ben", "item": ITEM.id, **ANSWERS, "artefact": None}))
def test_a_store_of_reviews(decision: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("store") / "reviews.db"
    body = {"audit": "a", "role": "reviewer", **decision}
    require_own_error(lambda: Ledger(place).append(DECIDED, body))
    require_own_error(Store(place, "a").decisions)


@FEW
@given(row=changed({"item": ITEM.id, **ITEM.visible_texts, **ANSWERS, "artefact": ""}))
def test_a_sheet(row: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("sheet") / "sheet.jsonl"
    write_document(path, [row])
    require_own_error(lambda: sheets.read(path, {ITEM.id: ITEM}, "ben"))


@FEW
@given(data=st.data())
def test_an_export_of_label_studio(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    choice = {"from_name": "prompt_valid", "type": "choices", "value": {"choices": ["no"]}}
    task = {**make_task(ITEM), "annotations": [{"was_cancelled": False, "result": [choice]}]}
    path = tmp_path_factory.mktemp("tasks") / "tasks.json"
    write_document(path, data.draw(changed([task])))
    require_own_error(lambda: sheets.read(path, {ITEM.id: ITEM}, "ben"))


@FEW
@given(settings_=changed(SequentialPlan(threshold=0.3).settings))
def test_a_plan(settings_: Any) -> None:
    require_own_error(lambda: SequentialPlan.from_settings(settings_))


@FEW
@given(data=st.data(), column=st.sampled_from(["asked", "response"]))
def test_a_record_of_calls(
    data: st.DataObject, column: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    import sqlite3

    place = tmp_path_factory.mktemp("record") / "calls.db"
    question = Question("2 + 2?", temperature=0, extra={"a": 1})
    response = Response("4", model="m", usage={"input": 3}, logprobs=({"token": "4"},))
    Record(place).add([Call("openai/m", question, response, "2026-01-01")])
    whole = {"asked": question.to_dict(), "response": response.to_dict()}[column]
    with sqlite3.connect(place) as base:
        text = json.dumps(data.draw(changed(json.loads(json.dumps(whole)))))
        base.execute(f"UPDATE groundfault_calls SET {column} = ?", (text,))
    base.close()
    require_own_error(lambda: list(Record(place).calls()))
    require_own_error(lambda: Record(place).answers("openai/m", [question.hash]))


@FEW
@given(row=changed({"key": "bat|plain|none", "mismatch": True, "wrong": False, "model": "m"}))
def test_keys_of_a_run(row: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("keys") / "keys.jsonl"
    write_document(path, [row])
    require_own_error(lambda: load_replay(path))
