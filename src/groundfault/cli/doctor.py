"""``doctor``: installed packages, and the commands that each extra adds."""

from __future__ import annotations

import platform
import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version

from groundfault.base.database import Database
from groundfault.base.ledgers import VARIABLE, name_default
from groundfault.base.reading import read_beside
from groundfault.cli import shared
from groundfault.cli.command import command
from groundfault.cli.output import Result
from groundfault.cli.settings import own_options
from groundfault.render.page import make_table

_NEED = re.compile(r"([\w.-]+)(?:\[[^\]]*\])?[^;]*?(?:>=([\d.]+))?[^;]*;.*extra == ['\"]([\w-]+)")
TEXTS = tomllib.loads(read_beside(__file__, "extras.toml"))


@command()
@own_options
@shared.json_option("the account")
def doctor() -> Result:
    """List installed extras, and the use of each.

    It only reads the installed packages. groundfault sends no telemetry.
    """
    name = name_default() or f"off, by ${VARIABLE}"
    account = {
        "groundfault": version("groundfault"),
        "groundfault-lab": _find_version("groundfault-lab") or "not installed",
        "python": platform.python_version(),
        "system": platform.platform(),
        # of a URL, without its password
        "ledger": Database(name).place if "://" in name else name,
    }
    missing = list_missing()
    rows = [(name, text, missing.get(name, "not in this version")) for name, text in TEXTS.items()]
    table = make_table(
        "Extras",
        "ctt",
        ("extra", "adds", "state"),
        [(name, text, lacking or "installed") for name, text, lacking in rows],
        note="Install one: pip install 'groundfault[NAME]'",
    )
    extras = [{"extra": name, "adds": text, "lacks": lacking} for name, text, lacking in rows]
    lines = [f"{key}: {value}" for key, value in account.items()]
    return Result([*lines, table], {**account, "extras": extras})


def list_missing() -> dict[str, str]:
    """Return for each extra the packages that it lacks, in words; empty where it is complete."""
    lacking: dict[str, list[str]] = {}
    for need in requires("groundfault") or ():
        if match := _NEED.match(need):
            name, least, extra = match.groups()
            lacking.setdefault(extra, []).extend(_find_lack(name, least))
    return {extra: f"lacks {', '.join(names)}" if names else "" for extra, names in lacking.items()}


def _find_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _find_lack(name: str, least: str | None) -> Iterator[str]:
    present = _find_version(name)
    if present is None:
        yield name
        return
    if _read_numbers(present) < _read_numbers(least or ""):
        yield f"{name} {least} or newer (it is {present})"


def _read_numbers(text: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", text)[:3]]
