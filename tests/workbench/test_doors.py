"""Nobody comes in without the token, by another name, or writes from another page."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from groundfault.workbench.app import make_app
from groundfault.workbench.opened_report import Bench


@pytest.fixture
def stranger(bench: Bench) -> TestClient:
    return TestClient(make_app(bench), base_url="http://localhost:8457", follow_redirects=False)


def token_of(client: TestClient) -> str:
    return str(client.app.state.doors.token)  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", ["/", "/keys", "/static/htmx.min.js", "/nothing", "/?token=x"])
def test_without_the_token_nothing_is_shown(stranger: TestClient, path: str) -> None:
    answer = stranger.get(path)
    assert answer.status_code == 403
    assert "groundfault printed" in answer.text


def test_the_token_opens_once_and_leaves_the_address(stranger: TestClient) -> None:
    address = f"/keys?token={token_of(stranger)}&a=1"
    answer = stranger.get(address)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/keys?a=1"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert stranger.get("/keys").status_code == 200
    stranger.cookies.clear()
    assert stranger.get(address).status_code == 403


def test_the_token_leads_to_no_other_host(stranger: TestClient) -> None:
    answer = stranger.get(f"http://localhost:8457//evil.example/?token={token_of(stranger)}")
    assert answer.headers["location"] == "/evil.example/"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "a@b[", "[::1"])
def test_a_foreign_name_is_refused(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"host": host}).status_code == 400


@pytest.mark.parametrize("host", ["localhost:1234", "127.0.0.1:8457", "[::1]:80", "LOCALHOST"])
def test_this_machine_is_known_at_every_port(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": ""},
        {"origin": "null"},
        {"origin": "http://evil.example"},
        {"origin": "http://localhost:99"},
        {"origin": "http://localhost", "sec-fetch-site": "cross-site"},
        {"origin": "http://localhost", "sec-fetch-site": "same-site"},
    ],
)
def test_a_write_from_elsewhere_is_refused(client: TestClient, headers: dict[str, str]) -> None:
    assert client.post("/", headers=headers).status_code == 403


def test_a_write_from_a_page_of_its_own_comes_through(client: TestClient) -> None:
    assert client.post("/", headers={"sec-fetch-site": "same-origin"}).status_code == 405


def test_every_answer_has_a_strict_policy(client: TestClient, stranger: TestClient) -> None:
    for answer in (client.get("/"), client.get("/static/workbench.js"), stranger.get("/")):
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in policy
