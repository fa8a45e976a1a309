"""Pages of a report that are made again and compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundfault.auditing.page_check import check_foreign_pages, check_pages

PAGE = '<p>one of two</p>\n<svg width="20"><path d="M0,0h5v2"/><text x="3">57</text></svg>\n'


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        ("one", "one", "passed"),
        ("one of two", "two of two", "failed"),
        (">57<", ">75<", "failed"),
        ("<path", "<path class='x'", "failed"),
        ('x="3"', 'x="4.5"', "unchecked"),
        ("h5", "h5.25", "unchecked"),
        ('x="3"', 'onload="3"', "failed"),
    ],
)
def test_words_are_compared_and_places_in_figures_where_nothing_else_vouches(
    old: str, new: str, status: str, tmp_path: Path
) -> None:
    (tmp_path / "report.html").write_text(PAGE.replace(old, new, 1))
    check = check_pages(tmp_path, {"report.html": PAGE}, attested=False)
    assert check.status == status
    if status == "failed":
        assert check.differences[0].startswith("report.html: line ")
    attested = check_pages(tmp_path, {"report.html": PAGE}, attested=True)
    assert attested.status == ("passed" if status == "unchecked" else status)


def test_a_page_that_is_missing_or_longer_is_named(tmp_path: Path) -> None:
    check = check_pages(tmp_path, {"report.md": "# one\n"}, attested=True)
    assert check.differences == ("report.md: missing",)
    (tmp_path / "report.md").write_bytes(b"# one\n\xff")
    check = check_pages(tmp_path, {"report.md": "# one\n"}, attested=True)
    assert check.differences == ("report.md: 7 characters, 6",)


def test_pages_of_another_version_need_the_ledger() -> None:
    assert check_foreign_pages("0.1.0", "waived", attested=True).status == "passed"
    check = check_foreign_pages("0.1.0", "unchecked", attested=False)
    assert check.status == "unchecked"
    assert "0.1.0" in check.detail
