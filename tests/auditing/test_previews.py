"""Summaries of checks and proposals: the JSON of 0.1.0 byte for byte, and its keys."""

from __future__ import annotations

import json
from pathlib import Path

import groundfault
from groundfault import Evidence, Library, Plan
from groundfault_lab.slicing.proposals import propose
from groundfault_lab.slicing.sliceline import SliceLine

STORED = Path(__file__).resolve().parents[1] / "fixtures" / "v0_1_0"


def test_a_check_as_0_1_0_stored_it_is_written_again_but_for_what_is_new() -> None:
    evidence = Evidence.from_table(
        STORED / "confirmed" / "evidence.csv", id="item", outcome="error"
    )
    library = Library.load(STORED / "frozen" / "library.json")
    content = groundfault.check(evidence, Plan(judge="janus"), library, finders=[]).to_dict()
    expected = json.loads((STORED / "frozen" / "check.json").read_text(encoding="utf-8"))
    assert {use["column"]: use["stage"] for use in content.pop("columns")}
    assert content.pop("unit") == "example"
    # what could be detected is computed for each judge now
    for each in (content, expected, *content["candidates"], *expected["candidates"]):
        assert 0 < each.pop("minimum_detectable_lift") < 1
    for each in (content, expected):
        each.pop("power")
    assert json.loads(json.dumps(content)) == expected


def test_proposals_as_0_1_0_stored_them_are_written_again_but_for_what_is_new():
    data = Evidence.from_table(STORED / "confirmed" / "evidence.csv", id="item", outcome="error")
    proposals = propose(data, SliceLine(k=3, permutations=20))
    content = proposals.to_dict()
    assert content.pop("searches") == 20
    assert content.pop("chance")
    stored = json.loads((STORED / "frozen" / "slices.json").read_text(encoding="utf-8"))
    # a search had no bound by default, and ends long before it here
    stored["settings"]["min_share"] = stored["settings"].pop("least_share")
    assert stored["settings"].pop("max_parents") is None
    assert content["settings"].pop("max_parents") == 1_000_000
    assert content == stored
