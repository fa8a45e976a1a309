"""``doctor``, and what installs groundfault: extras, the image, the recipe."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
import zipfile
from pathlib import Path

import pytest
from commands import run_program

from groundfault.cli import doctor

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
OURS = {"test", "docs", "browser-test"}
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")


def test_every_extra_says_what_it_adds() -> None:
    assert set(EXTRAS) - OURS <= set(doctor.TEXTS)


@pytest.mark.parametrize("folder", ["lab", "studies"])
def test_the_distributions_beside_have_the_same_version(folder: str) -> None:
    text = (ROOT / folder / "pyproject.toml").read_text(encoding="utf-8")
    beside = tomllib.loads(text)["project"]
    assert beside["version"] == PROJECT["version"]
    ours = [need for need in beside["dependencies"] if need.startswith("groundfault")]
    assert {need.partition("==")[2] for need in ours} == {PROJECT["version"]}


def test_doctor_says_what_is_installed_and_what_is_not(tmp_path: Path) -> None:
    ending = run_program("doctor", "--json", "-", folder=tmp_path)
    assert ending.status == 0, ending.errors
    account = json.loads(ending.output)
    lacks = {one["extra"]: one["lacks"] for one in account["extras"]}
    assert lacks["web"] == ""
    assert account["python"] == sys.version.split()[0]
    assert list(tmp_path.iterdir()) == []
    shown = run_program("doctor", folder=tmp_path).output
    assert "pip install 'groundfault[NAME]'" in shown


def test_packages_that_are_absent_or_too_old_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    needs = [
        "numpy>=2.1",
        "groundfault-absent[x]>=1; extra == 'a'",
        'numpy>=999.1; extra == "b"',
        "click>=1; extra == 'c'",
        "scipy; python_version > '3' and extra == 'd'",
    ]
    monkeypatch.setattr(doctor, "requires", lambda _: needs)
    missing = doctor.list_missing()
    assert missing["a"] == "lacks groundfault-absent"
    assert re.fullmatch(r"lacks numpy 999.1 or newer \(it is [\d.]+\)", missing["b"])
    assert missing["c"] == missing["d"] == ""


def test_a_password_of_the_ledger_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "GROUNDFAULT_LEDGER", "postgresql+psycopg://me:s3cret@db/ledger?password=s3cret"
    )
    output = run_program("doctor").output
    assert "s3cret" not in output
    assert "me:***@db" in output


# -------------------------------------------------------------------------------------- the image


def read_words(instruction: str) -> list[str]:
    """Return the words of an instruction of the Dockerfile in its JSON form."""
    (text,) = re.findall(rf"^{instruction}\b.*?(\[.*\])$", DOCKERFILE, re.MULTILINE)
    words: list[str] = json.loads(text)
    return words


def test_the_image_is_built_of_the_project_and_runs_without_rights() -> None:
    lines = [line.split() for line in DOCKERFILE.splitlines() if line and line[0] != "#"]
    assert [line[1] for line in lines if line[0] == "USER"] == ["10001:10001"]
    for line in lines:
        if line[0] == "FROM":
            assert re.fullmatch(r"[\w.-]+:[\w.-]+", line[1])
        if line[0] == "COPY" and not line[1].startswith("--"):
            assert all((ROOT / name).exists() for name in line[1:-1])
    (install,) = re.findall(r"'\.\[(.+?)\]'", DOCKERFILE)
    assert set(install.split(",")) <= set(EXTRAS)
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert {line[1:] for line in ignored if line[0] == "!"} == {
        "pyproject.toml", "README.md", "LICENSE", "src"
    }  # fmt: skip


def test_the_image_serves_the_workbench_and_its_health_check_sees_it(tmp_path: Path) -> None:
    """Its words and environment, as its user, in a folder that cannot be written."""
    rows = "".join(f"{i},{i % 3},{i % 7 == 0:d}\n" for i in range(200))
    (tmp_path / "t.csv").write_text("id,a,error\n" + rows)
    words = ("audit", "t.csv", "--id", "id", "--outcome", "error", "--no-ledger", "--out", "report")
    assert run_program(*words, folder=tmp_path).status == 0
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    command = [word.replace("8000", port) for word in read_words("CMD")]
    assert read_words("ENTRYPOINT") == ["groundfault"]
    home = tmp_path / "tmp"
    home.mkdir()
    for place in (tmp_path, *tmp_path.rglob("*")):
        place.chmod(0o555 if place.is_dir() else 0o444)
    home.chmod(0o777)
    variables = {**os.environ, "HOME": str(home), "NUMBA_CACHE_DIR": str(home)}
    root = {"user": 10001, "group": 10001} if os.geteuid() == 0 and _can_read(tmp_path) else {}
    served = subprocess.Popen(
        [sys.executable, "-m", "groundfault", *command],
        cwd=tmp_path,
        env=variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        **root,
    )
    (check,) = re.findall(r"^HEALTHCHECK .*CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)
    health = [sys.executable, *json.loads(check)[1:-1], json.loads(check)[-1].replace("8000", port)]

    def ask() -> int:
        return subprocess.run(health, capture_output=True, check=False).returncode

    try:
        deadline = time.monotonic() + 60
        while ask() and served.poll() is None and time.monotonic() < deadline:
            time.sleep(0.2)
        assert served.poll() is None, served.stderr.read() if served.stderr else ""
        assert ask() == 0
    finally:
        served.send_signal(signal.SIGTERM)
        served.communicate(timeout=30)
        for place in (tmp_path, *tmp_path.rglob("*")):
            place.chmod(0o755 if place.is_dir() else 0o644)
    assert ask() != 0


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the image runs a shell")
def test_the_steps_of_the_image_install_what_it_runs(tmp_path: Path) -> None:
    """Its own words in a new environment; this needs the package registry, and no builder."""
    source, place = tmp_path / "source", tmp_path / "opt"
    source.mkdir()
    for line in re.findall(r"^COPY (?!--)(.+)$", DOCKERFILE, re.MULTILINE):
        *names, target = line.split()
        for name in names:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, source / target)
            else:
                shutil.copy(ROOT / name, source / target)
    (step,) = re.findall(r"^RUN (.+)$", DOCKERFILE, re.MULTILINE)
    step = step.replace("/opt/groundfault", str(place)).replace("python -m venv", "$PY -m venv")
    words = {"cwd": source, "env": {"PATH": os.environ["PATH"], "PY": sys.executable}}
    subprocess.run(["sh", "-c", step], check=True, **words)
    words = {"cwd": tmp_path, "env": {"PATH": str(place / "bin"), "HOME": str(tmp_path)}}
    subprocess.run([place / "bin" / "groundfault", "demo"], check=True, **words)
    account = json.loads(
        subprocess.run(
            [place / "bin" / "groundfault", "doctor", "--json", "-"],
            capture_output=True,
            check=True,
            **words,
        ).stdout
    )
    (extras,) = re.findall(r"'\.\[(.+?)\]'", DOCKERFILE)
    lacks = {one["extra"]: one["lacks"] for one in account["extras"]}
    assert [lacks[name] for name in extras.split(",")] == [""] * len(extras.split(","))


@pytest.mark.slow
def test_the_wheel_is_small_and_holds_the_package_alone(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="pip install hatchling")
    words = "pip wheel --quiet --no-deps --no-build-isolation --wheel-dir".split()
    command = [sys.executable, "-m", *words, str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.stat().st_size < 3_000_000
    tops = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {re.sub(r"-.*", "", top) for top in tops} == {"groundfault"}


def _can_read(place: Path) -> bool:
    """Return whether any user can come to a folder, and to our Python and sources."""
    places = [place, Path(sys.executable).resolve(), Path(doctor.__file__)]
    return all(above.stat().st_mode & 0o001 for one in places for above in one.parents)


# -------------------------------------------------------------------------------------- the recipe


def test_the_recipe_for_conda_needs_what_the_project_needs() -> None:
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    needs = dict(line.split() for line in recipe["requirements"]["run"])
    plain = (one.partition(";")[0] for one in PROJECT["dependencies"])
    ours = dict(re.split(r"(?=>=)", one, maxsplit=1) for one in plain)
    names = {name.lower(): least for name, least in ours.items()}
    assert needs == {"python": PROJECT["requires-python"], **names}
    assert recipe["about"]["license"] == PROJECT["license"]
    (script,) = recipe["build"]["python"]["entry_points"]
    assert script.replace(" ", "").split("=") == ["groundfault", PROJECT["scripts"]["groundfault"]]
