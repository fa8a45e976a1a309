"""Controlled-docs packets: solved from their text alone, balanced, reproducible, and graded as
specified.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from difflib import SequenceMatcher

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st

from groundfault import errors
from groundfault.core import evidence
from groundfault_studies import controlled_docs as docs

FACTORS = ("long_chain", "indirect_query", "collision_distractors", "target_late", "flat_format")
KEYS = ("badge", "name", "division", "project", "vendor", "subsidiary")


@pytest.fixture(scope="module")
def packets():
    return docs.generate()


# An independent solver: it sees the prompt, nothing else, and follows every match instead of the
# first.


def tables(prompt: str) -> dict[str, list[dict[str, str]]]:
    rows_by_title = {}
    for block in prompt.split("\n\n")[1:-2]:
        lines = block.split("\n")
        if len(lines) == 1:
            title, _, text = block.partition(": ")
            pairs = [pair.split("=") for pair in text.split("; ")]
            starts = [i for i, (field, _) in enumerate(pairs) if field == pairs[0][0]]
            rows_by_title[title] = [
                dict(pairs[a:b]) for a, b in zip(starts, [*starts[1:], len(pairs)], strict=True)
            ]
        else:
            fields = lines[1].split(" | ")
            rows_by_title[lines[0]] = [
                dict(zip(fields, line.split(" | "), strict=True)) for line in lines[2:]
            ]
    return rows_by_title


def follow(
    rows: list[dict[str, str]], chains: list[dict[str, str]], on: tuple[str, ...]
) -> list[dict[str, str]]:
    return [k | row for k in chains for row in rows if all(k[field] == row[field] for field in on)]


def solve(prompt: str, *, match: tuple[str, ...] = ("name", "division")) -> list[dict[str, str]]:
    """Every chain of keys that leads from the question to a code, matching staff to assignments on
    ``match``.
    """
    rows_by_title = tables(prompt)
    question = prompt.split("\n\n")[-2]
    key = re.search(r"badge (BD-\d+)\?$|project (\S+)\?$", question)
    assert key is not None, question
    chains = [{"badge": key[1]} if key[1] else {"project": key[2]}]
    if key[1]:
        staff = follow(rows_by_title["STAFF DIRECTORY"], chains, ("badge",))
        people = [{field: chain[field] for field in match} for chain in staff]
        chains = follow(rows_by_title["ASSIGNMENT LEDGER"], people, match)
    if "PROJECT RENEWAL REGISTRY" in rows_by_title:
        return follow(rows_by_title["PROJECT RENEWAL REGISTRY"], chains, ("project",))
    chains = follow(rows_by_title["PROJECT TO VENDOR CROSSWALK"], chains, ("project",))
    chains = follow(rows_by_title["VENDOR TO SUBSIDIARY CROSSWALK"], chains, ("vendor",))
    return follow(rows_by_title["SUBSIDIARY RENEWAL REGISTRY"], chains, ("subsidiary",))


def assert_solved(packet: docs.Packet) -> None:
    chains = solve(packet.prompt)
    assert [chain["renewal_code"] for chain in chains] == [packet.answer]
    for key in KEYS:
        if key in chains[0]:
            assert chains[0][key] == getattr(packet, key)


def test_every_packet_has_exactly_one_answer(packets):
    for packet in packets:
        assert_solved(packet)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**40), rows=st.integers(8, 60))
def test_one_answer_whatever_the_seed_and_size(seed, rows):
    for packet in docs.generate(1, seed, rows):
        assert_solved(packet)


def test_the_largest_packets_are_solvable():
    for packet in docs.generate(1, seed=3, rows=500):
        assert_solved(packet)


def test_the_design_is_a_full_factorial(packets):
    cells = Counter(tuple(getattr(packet, factor) for factor in FACTORS) for packet in packets)
    assert len(packets) == 160
    assert len(cells) == 32
    assert set(cells.values()) == {5}
    assert len({packet.item_id for packet in packets}) == 160
    assert len({packet.prompt for packet in packets}) == 160


@pytest.mark.parametrize("match", [("name",), ("division",)])
def test_collisions_make_name_or_division_alone_ambiguous(packets, match):
    for packet in packets:
        if packet.indirect_query and packet.collision_distractors:
            codes = {chain["renewal_code"] for chain in solve(packet.prompt, match=match)}
            assert packet.answer in codes
            assert len(codes) >= (5 if match == ("name",) else 2)


def likeness(name: str, other: str) -> float:
    return SequenceMatcher(None, name, other).ratio()


def test_only_collisions_repeat_or_resemble_the_targets_name(packets):
    for packet in packets:
        names = [row["name"] for row in tables(packet.prompt)["STAFF DIRECTORY"]]
        namesakes = [
            name
            for name in names
            if name.split()[0] == packet.name.split()[0] and name != packet.name
        ]
        alike = [
            name for name in namesakes if likeness(name.split()[1], packet.name.split()[1]) > 0.7
        ]
        assert names.count(packet.name) == (5 if packet.collision_distractors else 1)
        assert len(alike) == (2 if packet.collision_distractors else 0)
        assert packet.collision_distractors or len(set(names)) == len(names)
        if packet.collision_distractors:
            staff = tables(packet.prompt)["STAFF DIRECTORY"]
            assert packet.division in [row["division"] for row in staff if row["name"] in alike]


def test_staff_and_keys_are_distinct(packets):
    for packet in packets:
        for rows in tables(packet.prompt).values():
            assert len(rows) == 40
            for field in rows[0]:
                if field not in ("name", "division"):
                    assert len({row[field] for row in rows}) == 40
            if "name" in rows[0]:
                assert len({(row["name"], row["division"]) for row in rows}) == 40


def answer_places(packet: docs.Packet) -> list[float]:
    """Where the answer's row stands in each table, from 0 (first) to 1 (last)."""
    values = {key: getattr(packet, key) for key in KEYS} | {"renewal_code": packet.answer}
    places = []
    for rows in tables(packet.prompt).values():
        (place,) = [
            i for i, row in enumerate(rows) if all(values[field] == row[field] for field in row)
        ]
        places.append(place / (len(rows) - 1))
    return places


def test_late_rows_come_last_and_others_anywhere(packets):
    late = [place for packet in packets if packet.target_late for place in answer_places(packet)]
    early = [
        place for packet in packets if not packet.target_late for place in answer_places(packet)
    ]
    assert set(late) == {1.0}
    assert len(early) == 80 * 4  # three tables where the chain is short, five where it is long
    assert abs(np.mean(early) - 0.5) < 4 * np.sqrt(1 / 12 / len(early))
    assert len(set(early)) == 40


def test_flat_tables_are_one_line_each(packets):
    for packet in packets:
        blocks = packet.prompt.split("\n\n")[1:-2]
        assert len(blocks) == (5 if packet.long_chain else 3)
        for block in blocks:
            assert block.count("\n") == (0 if packet.flat_format else 41)
            assert ("|" in block) != packet.flat_format
            assert ("=" in block) == packet.flat_format


def test_the_prompt_holds_question_and_instruction(packets):
    for packet in packets:
        assert packet.prompt.split("\n\n")[-2] == f"QUESTION\n{packet.question}"
        assert "only the packet" in packet.prompt
        assert "one renewal code" in packet.prompt
        assert (packet.badge in packet.question) == packet.indirect_query
        assert (packet.project in packet.question) != packet.indirect_query
        assert packet.answer not in packet.question


def test_a_packet_depends_on_seed_and_index_alone(packets):
    assert docs.generate(2) == packets[:64]
    assert docs.generate(1, seed=1)[7].prompt != packets[7].prompt


def test_another_process_makes_the_same_packets(packets):
    script = (
        "import hashlib; from groundfault_studies.controlled_docs import generate;"
        "print(hashlib.sha256(repr(generate()).encode()).hexdigest())"
    )
    other = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert other.stdout.strip() == hashlib.sha256(repr(packets).encode()).hexdigest()


@pytest.mark.parametrize(
    "setting",
    [{"replicates": 0}, {"seed": -1}, {"rows": 7}, {"rows": 501}],
    ids=lambda setting: str(setting),
)
def test_impossible_settings_are_refused(setting):
    with pytest.raises(
        errors.PlanError, match=f"{next(iter(setting))}={next(iter(setting.values()))}"
    ):
        docs.generate(**setting)


PACKET = replace(
    docs.generate(1)[1],
    question="What is the renewal code for project HARBOR-118?",
    answer="QZ-4421",
    project="HARBOR-118",
    vendor="KAPPA-759",
    subsidiary="SUBD-130",
)


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("QZ-4421", "correct"),
        ("  QZ-4421\n", "correct"),
        ("**QZ-4421**", "correct"),
        ("_QZ-4421_", "correct"),
        ("`QZ-4421`.", "correct"),
        ("QZ-4421, I repeat: QZ-4421", "correct"),
        ("The renewal code for project HARBOR-118 is QZ-4421.", "correct"),
        ("KAPPA-759", "vendor"),
        ("HARBOR-118 -> KAPPA-759", "vendor"),
        ("SUBD-130", "subsidiary"),
        ("RX-8890", "other_code"),
        ("VANTA-031", "other_code"),
        ("HARBOR-118", "other_code"),
        ("SUMMIT-204", "other_code"),
        ("BD-40271", "other_code"),
        ("", "malformed"),
        ("I cannot tell.", "malformed"),
        ("qz-4421", "malformed"),
        ("QZ 4421", "malformed"),
        ("QZ–4421", "malformed"),
        ("QZ-44210000", "malformed"),
        ("QZ-4421-B", "malformed"),
        ("XQZ-4421", "other_code"),
        ("A-QZ-4421", "malformed"),
        ("QZ-٤٤٢١", "malformed"),
        ("QZ-4421 or RX-8890", "malformed"),
        ("KAPPA-759 then SUBD-130 then QZ-4421", "malformed"),
    ],
)
def test_grade(response, expected):
    assert docs.grade(PACKET, response) == expected


def test_a_badge_named_in_the_question_may_be_restated():
    packet = replace(
        PACKET,
        question="What is the renewal code for the project assigned to staff badge BD-40271?",
    )
    assert docs.grade(packet, "Badge BD-40271: QZ-4421") == "correct"
    assert docs.grade(packet, "HARBOR-118: QZ-4421") == "malformed"


@given(
    st.text()
    | st.lists(st.sampled_from(["QZ-4421", "KAPPA-759", "SUBD-130", "RX-8890", " ", "x"])).map(
        "".join
    )
)
def test_only_a_response_that_holds_the_code_is_correct(response):
    verdict = docs.grade(PACKET, response)
    assert verdict in ("correct", "vendor", "subsidiary", "other_code", "malformed")
    assert verdict != "correct" or PACKET.answer in response


def test_every_key_of_every_packet_grades_as_itself(packets):
    for packet in packets:
        assert docs.grade(packet, packet.answer) == "correct"
        assert docs.grade(packet, packet.project) == "other_code"
        assert docs.grade(packet, packet.badge) == "other_code"
        if packet.long_chain:
            assert packet.vendor is not None
            assert packet.subsidiary is not None
            assert docs.grade(packet, packet.vendor) == "vendor"
            assert docs.grade(packet, packet.subsidiary) == "subsidiary"
        else:
            assert packet.vendor is packet.subsidiary is None


def test_frame_and_library_agree(packets):
    frame = docs.to_frame(packets)
    library = docs.library()
    assert len(library) == 10
    on = {c.name: frame.select(c.parsed.to_polars().alias(c.name)).to_series() for c in library}
    for name, values in on.items():
        assert values.equals(frame[name])
    assert {name: int(values.sum()) for name, values in on.items()} == {
        **dict.fromkeys(FACTORS, 80),
        **dict.fromkeys(("long_x_indirect", "long_x_collision", "flat_x_long", "long_x_late"), 40),
        "hard_join_combo": 20,
    }
    expected = [p.long_chain and p.indirect_query and p.collision_distractors for p in packets]
    assert frame["hard_join_combo"].to_list() == expected
    assert docs.to_frame([]).schema == frame.schema


def test_the_library_has_the_names_of_the_reconstruction(shared):
    frame = pl.read_csv(shared / "janus_public" / "table1_reconstruction.csv")
    assert {c.name for c in docs.library()} == {
        c.removeprefix("d__") for c in frame.columns if c.startswith("d__")
    }


def answers(packets, seed, **settings):
    rng = np.random.default_rng(seed)
    return [docs.grade(packet, docs.scripted_answer(packet, rng, **settings)) for packet in packets]


def test_a_scripted_answer_without_weakness_is_right(packets):
    assert set(answers(packets, 1, stop=0, slip=0)) == {"correct"}


def test_a_scripted_answer_stops_only_on_long_chains(packets):
    for packet, verdict in zip(packets, answers(packets, 1, stop=1, slip=0), strict=True):
        assert verdict in (("vendor", "subsidiary") if packet.long_chain else ("correct",))
    stops = Counter(answers(packets, 1, stop=1, slip=0))
    assert abs(stops["vendor"] - 40) < 4 * np.sqrt(80 / 4)
    assert set(answers(packets, 1, stop=0, slip=1)) == {"other_code"}
    assert answers(packets, 1) == answers(packets, 1)
    assert answers(packets, 1) != answers(packets, 2)


@pytest.mark.parametrize("setting", [{"stop": 1.5}, {"slip": -0.1}, {"stop": float("nan")}])
def test_scripted_probabilities_are_checked(packets, setting):
    with pytest.raises(errors.PlanError, match="probability"):
        docs.scripted_answer(packets[0], np.random.default_rng(0), **setting)


def test_scripted_error_rates_are_as_stated():
    packets = docs.generate(20, rows=8)
    wrong = np.array([verdict != "correct" for verdict in answers(packets, 0)])
    long = np.array([packet.long_chain for packet in packets])
    for rate, expected in ((wrong[long].mean(), 0.63), (wrong[~long].mean(), 0.075)):
        assert abs(rate - expected) < 4 * np.sqrt(expected * (1 - expected) / long.sum())


def test_the_planted_weakness_shows_in_evidence(packets):
    keys = ["prompt", "question", "answer", *KEYS]
    error = [verdict != "correct" for verdict in answers(packets, 7)]
    frame = docs.to_frame(packets).with_columns(error=pl.Series(error))
    results = evidence.Evidence.from_table(frame, id="item_id", outcome="error", ignore=keys)
    lifts = {}
    for candidate in docs.library():
        on = results.frame.select(candidate.parsed.to_polars()).to_series()
        lifts[candidate.name] = results.loss.filter(on).mean() - results.loss.filter(~on).mean()
    assert max(lifts, key=lambda name: abs(lifts[name])) == "long_chain"
    assert lifts["long_chain"] > 0.4
    assert set(results.attributes) == {c.name for c in docs.library()}
