"""The review screen over HTTP: what is stored, what a page must not say, what it does not run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from bench_reports import visit
from probe_runs import make_wrong_rows, write_runs
from review_desks import make_items, open_review
from starlette.testclient import TestClient

from groundfault.probes.review.reviewed_runs import ReviewedRuns
from groundfault.review import Item, Store, resolve
from groundfault.workbench.opened_report import open_review as open_runs

WRONG = {"prompt_valid": "yes", "extraction_valid": "yes", "model_wrong": "yes"}


def find_turn(html: str) -> str:
    match = re.search(r'name="turn" value="([^"]+)"', html)
    assert match
    return match[1]


def test_a_review_by_requests(tmp_path: Path) -> None:
    client = visit(open_review(tmp_path / "r.db", "ana", make_items(3)))
    home = client.get("/", follow_redirects=False)
    assert (home.status_code, home.headers["location"]) == (303, "/review")
    html = client.get("/review").text
    for decided in range(3):
        assert f"{decided} of 3 decided" in html
        turn = find_turn(html)
        answer = client.post("/review/decide", data={"turn": turn, **WRONG, "note": "a\r\nb "})
        html = answer.text
    assert "All are decided" in html
    # the same request again, as a browser may send it, stores nothing
    late = client.post("/review/decide", data={"turn": turn, **WRONG})
    assert "not the newest" in late.text
    decisions = Store(tmp_path / "r.db", "audit").decisions()
    assert [(d.reviewer, d.verdict, d.note) for d in decisions] == [
        ("ana", "model_error", "a\nb")
    ] * 3
    back = client.post("/review/back", data={"turn": find_turn(html)}).text
    assert "You said: yes" in back
    assert ">a\nb\n</textarea>" in back
    again = client.post("/review/again", data={"turn": "any"}).text
    assert "All are decided" in again


def test_what_is_no_decision_is_refused_in_a_line(tmp_path: Path) -> None:
    client = visit(open_review(tmp_path / "r.db", "ana", make_items(2)))
    turn = find_turn(client.get("/review").text)
    answer = client.post(
        "/review/decide",
        data={"turn": turn, "prompt_valid": "yes"},
        headers={"x-groundfault-part": "1"},
    )
    assert answer.status_code == 400
    assert 'role="alert"' in answer.text
    assert "extraction_valid is missing" in answer.text
    assert Store(tmp_path / "r.db", "audit").decisions() == []
    assert client.post("/review/nonsense").status_code == 404


def test_a_page_of_a_review_holds_nothing_that_would_unblind(tmp_path: Path) -> None:
    items = make_items(4)
    reviews = tmp_path / "secret-store.db"
    other = visit(open_review(reviews, "bernadette", items, reviewers=2))
    turn = find_turn(other.get("/review").text)
    said = {"prompt_valid": "no", "note": "bernadette thinks otherwise"}
    other.post("/review/decide", data={"turn": turn, **said})
    ana = visit(open_review(reviews, "ana", items, reviewers=2))
    answers = [ana.get("/review/whole"), ana.get("/review")]
    for _ in items:
        data = WRONG | {"turn": find_turn(answers[-1].text)}
        answers.append(ana.post("/review/decide", data=data))
    hidden = ["task-0", "bernadette", "secret-store", "runs", "audit"]
    hidden += [item.id[:8] for item in items]
    hidden += [d.item[:8] for d in Store(reviews, "audit").decisions()]
    for answer in answers:
        assert [name for name in hidden if name in answer.text + str(answer.url)] == []
    # the rest of the workbench is not there: no report, no rows, no cards
    assert {ana.get(path).status_code for path in ("/x", "/rule", "/holdout", "/cards")} == {404}


def test_an_adjudicator_sees_disputed_items_and_no_votes(tmp_path: Path) -> None:
    items, place = make_items(3), tmp_path / "r.db"
    for who, word in (("ana", "yes"), ("ben", "no")):
        client = visit(open_review(place, who, items, reviewers=2))
        html = client.get("/review").text
        for _ in items:
            fields = WRONG | {"turn": find_turn(html), "model_wrong": word, "note": f"{who} said"}
            html = client.post("/review/decide", data=fields).text
    cy = visit(open_review(place, "cy", items, reviewers=2, adjudicate=True))
    html = cy.get("/review").text
    assert "Adjudication: 0 of 3 decided" in html
    assert "said" not in html
    cy.post("/review/decide", data=WRONG | {"turn": find_turn(html)})
    hows = [each.how for each in resolve(Store(place, "audit").decisions(), 2).values()]
    assert sorted(hows) == ["adjudicated", "disputed", "disputed"]


def test_hostile_texts_are_text(tmp_path: Path) -> None:
    attack = "<script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m\u202e{{ 7*7 }}\ud800"
    item = Item(attack, attack, attack, attack, attack, question=attack)
    html = visit(open_review(tmp_path / "r.db", "<b>ana</b>", (item,))).get("/review").text
    assert "<script>alert" not in html
    assert "<img src=x" not in html
    assert "<b>" not in html
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert html.count("&lt;script&gt;alert(1)") == 5


def walk(client: TestClient) -> Iterator[str]:
    """Every page that a reviewer of probe runs gets to see, and its address."""
    answer = client.get("/review")
    while True:
        yield f"{answer.url} {answer.text}"
        if "All are decided" in answer.text:
            break
        whole = client.get("/review/whole")
        yield f"{whole.url} {whole.text}"
        data = WRONG | {"turn": find_turn(answer.text)}
        answer = client.post("/review/decide", data=data)


def test_a_review_of_probe_runs_says_neither_model_nor_policy(tmp_path: Path) -> None:
    rows = [*make_wrong_rows(4), *make_wrong_rows(4, model="rival/other-model-9b")]
    runs = write_runs(tmp_path / "runs", rows, unit="row", reviewers=2)
    pages = list(walk(visit(open_runs(runs, "ana"))))
    assert len(pages) == 2 * 8 + 1
    hidden = ["secret-model", "other-model", "4711", "stratified", "mismatch", "signal", "control"]
    prompts = " ".join(row.prompt for row in rows)
    hidden += [part for row in rows for part in (row.key, row.task) if part not in prompts]
    hidden += [f"{row.id}"[:8] for row in rows] + [d.item for d in ReviewedRuns(runs).decisions]
    for page in pages:
        assert [name for name in hidden if name in page] == []
        assert not re.search(r"\bgp\b", page)


def test_who_does_not_review_sees_how_far_it_is_and_how_far_people_agree(tmp_path: Path) -> None:
    runs = write_runs(tmp_path / "runs", make_wrong_rows(3), unit="row", reviewers=2)
    for who in ("ana", "ben"):
        list(walk(visit(open_runs(runs, who))))
    nobody = visit(open_runs(runs))
    html = nobody.get("/review/progress").text
    assert re.search(r"Settled</dt><dd>3<", html)
    assert html.count('scope="row">') == 2 + 4
    assert "No item was reviewed blind" not in html
    assert "1.00" in html
    # a reviewer's own workbench has no such page
    assert visit(open_runs(runs, "ana")).get("/review/progress").status_code == 404
