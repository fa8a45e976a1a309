"""The folder of a run: locked by one process, its settings sealed in a ledger."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from groundfault.base.files import write_bytes
from groundfault.base.ledger import Event, Ledger
from groundfault.base.reading import read_bytes
from groundfault.errors import InputError, LedgerError, PlanError
from groundfault.probes.bank.bank import Bank
from groundfault.probes.bank.grammar import Grammar
from groundfault.probes.running.config import Config, slug
from groundfault.probes.running.runs import BANK, GRAMMAR, LEDGER, LOCK, MANIFEST

SEALED, ITERATION = "probe_run_sealed", "probe_iteration"


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Hold a folder: a second process is refused, and a process that is killed holds it no longer.

    Raises
    ------
    InputError
        If another process holds it, or it cannot be written to.
    """
    import sqlite3

    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = sqlite3.connect(folder / LOCK, timeout=0, isolation_level=None)
        lock.execute(
            "BEGIN EXCLUSIVE"
        )  # the operating system lets go of it, however the process ends
    except OSError as error:
        raise InputError(
            f"cannot write to {folder}: {error.strerror or error}; choose another folder"
        ) from None
    except sqlite3.Error as error:
        if "locked" in str(error):
            raise InputError(
                f"another process runs in {folder}; wait for its end, or choose another folder"
            ) from None
        raise InputError(f"cannot write to {folder}: {error}; choose another folder") from None
    with closing(lock):
        yield


def seal(
    folder: Path, config: Config, bank: Bank, grammar: Grammar, model: str, more: Mapping[str, Any]
) -> list[Event]:
    """Fix what is to be asked, or make sure that it is what was fixed before.

    Parameters
    ----------
    folder : Path
        Held by this process.
    config : Config
    bank, grammar
        Its own, loaded.
    model : str
        The name of the target.
    more : mapping
        Further entries of the manifest.

    Returns
    -------
    list of Event
        All that the ledger holds.

    Raises
    ------
    InputError
        If the folder was begun with another bank, grammar or config.
    LedgerError
        If what was fixed has been changed.
    """
    settings = {**_describe(bank, grammar), **config.to_dict(), **more}
    # these bytes are sealed: another order or indent is another hash
    text = (json.dumps(settings, indent=1) + "\n").encode()
    ledger, place = Ledger(folder / LEDGER), folder / MANIFEST
    # the manifest's hash is in the ledger, so that neither can be exchanged alone
    exists, sealed = place.exists(), {"manifest": hashlib.sha256(text).hexdigest(), "model": model}
    if exists:
        _refuse_others(place, text, settings)
        _refuse_changed(folder, settings)
    events = _read_events(ledger) if (folder / LEDGER).exists() else []
    seals = [event.body for event in events if event.kind == SEALED]
    _refuse_seals(folder, seals, sealed)
    if not exists:
        for name, source in ((BANK, config.bank), (GRAMMAR, config.grammar)):
            write_bytes(folder / name, read_bytes(source))
        write_bytes(place, text)
    if not any(sealed.items() <= body.items() for body in seals):
        events.append(ledger.append(SEALED, {**sealed, "groundfault": version("groundfault")}))
    return events


def _describe(bank: Bank, grammar: Grammar) -> dict[str, Any]:
    return {
        "bank": {"name": bank.name, "sha256": bank.hash, "tasks": len(bank)},
        "grammar": {"name": grammar.name, "sha256": grammar.hash, "assignments": len(grammar)},
    }


def _read_events(ledger: Ledger) -> list[Event]:
    ledger.check()
    return ledger.events()


def _refuse_changed(folder: Path, settings: Mapping[str, Any]) -> None:
    for name, description in _describe(
        Bank.load(folder / BANK), Grammar.load(folder / GRAMMAR)
    ).items():
        if description != settings[name]:
            raise LedgerError(
                f"{folder / name}.toml was changed after the run began; put back what it was"
            )


def _refuse_seals(
    folder: Path, seals: Sequence[Mapping[str, Any]], sealed: Mapping[str, str]
) -> None:
    for body in seals:
        if body["manifest"] != sealed["manifest"]:
            raise LedgerError(
                f"{folder} was sealed with another {MANIFEST}; restore that, or choose another "
                "folder"
            )
        # folders are named by slug: two models with one slug would write into each other's files
        if body["model"] != sealed["model"] and slug(str(body["model"])) == slug(sealed["model"]):
            raise PlanError(
                f"{folder} holds runs of {body['model']}, a name too like this one; choose another "
                "folder"
            )


def _refuse_others(place: Path, text: bytes, now: Mapping[str, Any]) -> None:
    content = read_bytes(place)
    if content == text:
        return
    try:
        before = json.loads(content)
        what, then, new = next(_find_differences(before, now))
        what = what.removesuffix(" sha256")
    except (StopIteration, TypeError, ValueError, AttributeError):
        raise LedgerError(
            f"{place} was changed after the run began; restore it from a copy"
        ) from None
    raise InputError(
        f"{place.parent} was begun with another {what}: {then} then, {new} now; put it back, or "
        "choose another folder"
    )


def _find_differences(before: Any, now: Any, where: str = "") -> Iterator[tuple[str, str, str]]:
    """What differs, by its path, and how."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for name in (*now, *(name for name in before if name not in now)):
            yield from _find_differences(before.get(name), now.get(name), f"{where} {name}".strip())
    elif before != now:
        yield where, _shorten(before), _shorten(now)


def _shorten(value: Any) -> str:
    text = value[:12] if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
