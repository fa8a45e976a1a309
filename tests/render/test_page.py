"""Tables in a terminal: no number is broken and no word of a head over numbers, however narrow it
is.
"""

from __future__ import annotations

import io

from hypothesis import given, strategies as st
from rich.console import Console

from groundfault.render.markdown import markdown
from groundfault.render.page import Page, Section, Table, TableColumn
from groundfault.render.terminal import fit_table, show

WIDE = Table(
    "Resolved audit",
    (
        TableColumn("Policy"),
        *(
            TableColumn(head, "number")
            for head in ("Routed rows", "Unaudited rows", "Mean best score")
        ),
    ),
    (
        ("stratified", "1,234", "12", "1.0000"),
        ("caps, repeats, prior=stressor", "5", "678", "0.3333"),
    ),
    "A note.",
)


def printed(table: Table, width: int) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, legacy_windows=False).print(fit_table(table, width))
    return out.getvalue().splitlines()


heads = st.lists(st.text("abcdef", min_size=1, max_size=9), min_size=1, max_size=3).map(" ".join)
columns = st.lists(st.tuples(heads, st.integers(0, 10**9)), min_size=1, max_size=9)


@given(columns=columns, names=st.lists(heads, min_size=1, max_size=3), width=st.integers(30, 130))
def test_every_number_and_word_of_a_head_stays_whole(
    columns: list[tuple[str, int]], names: list[str], width: int
) -> None:
    rows = tuple((name, *(f"{value:,}" for _, value in columns)) for name in names)
    lines = printed(
        Table(
            "t", (TableColumn("Name"), *(TableColumn(head, "number") for head, _ in columns)), rows
        ),
        width,
    )
    assert max(map(len, lines)) <= width
    words = " ".join(lines).split()
    for head, value in columns:
        assert words.count(f"{value:,}") >= len(names)
        assert set(head.split()) <= set(words)


def test_what_has_room_stands_in_one_part_with_heads_in_one_line() -> None:
    lines = printed(WIDE, 100)
    assert len([line for line in lines if "─" in line]) == 1
    assert "Routed rows  Unaudited rows  Mean best score" in lines[0]


def test_what_has_none_comes_in_parts_that_name_their_rows() -> None:
    lines = printed(WIDE, 34)
    assert len([line for line in lines if "stratified" in line]) == 2
    assert len([line for line in lines if not line.strip()]) == 1, "a blank line between the parts"


def test_a_table_with_the_name_of_its_section_is_named_once() -> None:
    content = Page("probes", "runs", "Nothing", sections=(Section(WIDE.caption, WIDE),))
    out = io.StringIO()
    show(content, Console(file=out, width=80))
    assert out.getvalue().count(WIDE.caption) == 1
    assert markdown(content).count(WIDE.caption) == 1
