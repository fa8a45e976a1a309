"""Nobody sees anything without the secret, by another name, or from another page."""

from __future__ import annotations

import pytest
from bench_reports import visit
from starlette.testclient import TestClient

from groundfault.workbench.app import make_app
from groundfault.workbench.auth import ENTRY, MAX_BODY, SECRET
from groundfault.workbench.opened_report import OpenedReport

BROWSER = {"accept": "text/html", "sec-fetch-mode": "navigate", "sec-fetch-site": "none"}


@pytest.fixture
def stranger(bench: OpenedReport) -> TestClient:
    return TestClient(make_app(bench), base_url="http://localhost:8457", follow_redirects=False)


def token_of(client: TestClient) -> str:
    return str(client.app.state.access.token)  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", ["/", "/keys", "/nothing", "/?token=x", "/ledger"])
def test_without_the_secret_nothing_is_shown(stranger: TestClient, path: str) -> None:
    answer = stranger.get(path)
    assert answer.status_code == 403
    assert "groundfault printed" in answer.text
    for secret in (token_of(stranger), "", "x"):
        assert stranger.get(path, headers={SECRET: secret}).status_code == 403


def test_a_browser_gets_a_page_that_holds_nothing(
    stranger: TestClient, bench: OpenedReport
) -> None:
    pages = {stranger.get(path, headers=BROWSER).text for path in ("/", "/examples", "/x?token=y")}
    (page,) = pages
    assert bench.report is not None
    assert bench.report.modes[0].meaning not in page
    assert token_of(stranger) not in page
    # what it loads is the same for everybody
    for name in ("client.js", "workbench.js", "review.js", "workbench.css", "icon.svg"):
        assert f"/static/{name}" in page
        assert stranger.get(f"/static/{name}").status_code == 200
    assert stranger.get("/static/../auth.py").status_code in (403, 404)


def test_the_token_gives_the_secret_once(stranger: TestClient) -> None:
    headers = {SECRET: token_of(stranger), "origin": "http://localhost:8457"}
    answer = stranger.post(ENTRY, headers=headers)
    assert answer.status_code == 200
    assert stranger.get("/keys", headers={SECRET: answer.text}).status_code == 200
    assert stranger.post(ENTRY, headers=headers).status_code == 403
    assert stranger.post("/keys", headers=headers).status_code == 403


def test_the_secret_is_no_cookie(client: TestClient) -> None:
    """A cookie would go to every port of the host, whoever listens there."""
    secret = client.headers[SECRET]
    answer = client.get("/")
    assert "set-cookie" not in answer.headers
    assert secret not in answer.text
    assert not client.cookies
    stranger = TestClient(client.app, base_url="http://localhost")
    for name in (SECRET, "groundfault", "groundfault-8457"):
        stranger.cookies.set(name, secret)
    assert stranger.get("/keys").status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "a@b[", "[::1"])
def test_a_foreign_name_is_refused(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"host": host}).status_code == 400


@pytest.mark.parametrize("host", ["localhost:1234", "127.0.0.1:8457", "[::1]:80", "LOCALHOST"])
def test_this_machine_is_known_at_every_port(client: TestClient, host: str) -> None:
    headers = {"host": host, "origin": f"http://{host}"}
    assert client.get("/", headers=headers).status_code == 200


FOREIGN = [
    {"origin": "null"},
    {"origin": "http://evil.example"},
    {"origin": "http://localhost:99"},
    {"origin": "http://localhost", "sec-fetch-site": "cross-site"},
    {"origin": "http://localhost", "sec-fetch-site": "same-site"},
]


@pytest.mark.parametrize("headers", [{"origin": ""}, *FOREIGN])
def test_a_write_from_elsewhere_is_refused(client: TestClient, headers: dict[str, str]) -> None:
    assert client.post("/", headers=headers).status_code == 403


@pytest.mark.parametrize("path", ["/", "/examples?rule=n_words=12", "/static/client.js"])
@pytest.mark.parametrize("headers", FOREIGN)
def test_a_look_from_elsewhere_is_refused(
    client: TestClient, path: str, headers: dict[str, str]
) -> None:
    assert client.get(path, headers=headers).status_code == 403
    # nor is the page that asks for the rest opened from there
    assert client.get(path, headers={SECRET: "", **BROWSER, **headers}).status_code == 403


def test_a_write_from_a_page_of_its_own_comes_through(client: TestClient) -> None:
    assert client.post("/", headers={"sec-fetch-site": "same-origin"}).status_code == 405
    assert client.post("/", headers={"sec-fetch-site": "none"}).status_code == 403


@pytest.mark.parametrize("length", [MAX_BODY + 1, 10**12, -1, "many"])
def test_a_request_is_no_larger_than_a_form(client: TestClient, length: object) -> None:
    answer = client.post("/rule", content=b"", headers={"content-length": str(length)})
    assert answer.status_code == 413


def test_a_body_of_unknown_length_is_cut_off(client: TestClient) -> None:
    answer = client.post("/holdout", content=(b"x" * 9000 for _ in range(9)))
    assert answer.status_code == 400
    assert "at most 65,536 bytes" in answer.text


def test_every_answer_has_a_strict_policy(bench: OpenedReport, stranger: TestClient) -> None:
    client = visit(bench)
    shell = stranger.get("/", headers=BROWSER)
    for answer in (client.get("/"), client.get("/static/workbench.js"), stranger.get("/"), shell):
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in policy
