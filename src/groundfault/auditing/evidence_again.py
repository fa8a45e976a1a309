"""Read the evidence of a report again, from its original or its present place."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from groundfault.auditing.lazy_evidence import LazyEvidence
from groundfault.auditing.report import WRITTEN, hash_file, report_path
from groundfault.auditing.report_schema import Manifest, ReportData, to_plain
from groundfault.base.ledger import Ledger
from groundfault.base.ledgers import name_default
from groundfault.base.reading import is_inside
from groundfault.core.evidence import Evidence
from groundfault.core.roles import LISTS
from groundfault.errors import GroundfaultError, InputError
from groundfault.readers.configurations import split_source
from groundfault.readers.scorers import DISAGREE

if TYPE_CHECKING:
    from groundfault.readers import Reader

Places = str | Path | Sequence[str | Path]
"""A file, folder or pattern, or several."""


def name_places(places: Places, sources: Sequence[str]) -> tuple[str | Path, ...]:
    """Return the places with the names that a report gives its sources.

    Parameters
    ----------
    places : path or sequence of path
    sources : sequence of str
        Sources in the report, such as ``base=logs/a``.

    Raises
    ------
    InputError
        If the sources have names, the places have no names, and their numbers differ.
    """
    mine = (places,) if isinstance(places, str | Path) else tuple(places)
    names = [split_source(source)[0] for source in sources]
    if not any(names) or any(split_source(place)[0] for place in mine):
        return mine
    if len(mine) != len(sources):
        raise InputError(
            f"the report is of {len(sources)} sources, {', '.join(sources)}: name as many places "
            "of the evidence, in this order (--evidence A --evidence B), or with their names "
            f"(--evidence {next(filter(None, names))}=A)"
        )
    return tuple(
        f"{name}={place}" if name else place for name, place in zip(names, mine, strict=True)
    )


def read_evidence_again(
    data: ReportData,
    directory: str | Path,
    evidence: Places | None = None,
    reader: Reader | None = None,
) -> Evidence:
    """Read the evidence of a report again, with its original settings.

    It holds all models, also models that are not in the report.

    Parameters
    ----------
    data : ReportData
    directory : path
        Folder of the report.
    evidence : path, or sequence of path, optional
        As in `verify`.
    reader : Reader, optional
        As in `verify`.

    Raises
    ------
    InputError
        If the evidence is missing; or if only the report names it. That is the case if it is
        neither in the current folder nor in the parent of the report's folder, and the caller's
        ledger does not hold the digest of the report.
    """
    manifest = data.manifest
    roles = to_plain(manifest.roles)
    if manifest.reading is not None:
        columns = {role: roles[role] for role in ("group", "split", "count_as_failed", *LISTS)}
        reading = msgspec.structs.asdict(manifest.reading)
        if reader is not None:
            reading["reader"] = reader
        sources = (
            name_places(evidence, manifest.sources)
            if evidence
            else _require_near(manifest.sources, Path(directory))
        )
        again = Evidence.from_logs(*sources, **reading, **columns)
        # earlier reports had none; and only columns that the format vouches for are believed
        known = tuple(c for c in again.roles.known if c in roles["known"])
        own = replace(again.roles, known=known)
        if DISAGREE in own.post_outcome and DISAGREE in roles["instrument"]:
            # they took it for a measure of scorers of any scales
            measured = {*own.instrument, DISAGREE}
            names = tuple(c for c in again.frame.columns if c in measured)
            left = tuple(c for c in own.post_outcome if c != DISAGREE)
            own = replace(own, instrument=names, post_outcome=left)
        return again.with_roles(own)
    del roles["known"]
    if roles.pop("numbered"):
        roles["id"] = None
    return Evidence.from_table(_find_table(evidence, manifest.sources, Path(directory)), **roles)


def scan_evidence_again(data: ReportData, place: Path, evidence: Places | None) -> LazyEvidence:
    """Name the table of a report by counts, for the engine that the report names."""
    assert data.manifest.derivation is not None
    roles = to_plain(data.manifest.roles)
    others = "model repeat numbered count_as_failed known scale passes during".split()
    source = _find_table(evidence, data.manifest.sources, place)
    if isinstance(source, tuple):
        raise InputError("a report by counts names files, and this one something else")
    settings = data.manifest.derivation.settings
    return LazyEvidence.scan(
        source,
        engine=settings.get("engine", ""),
        table=settings.get("table", ""),
        **{role: column for role, column in roles.items() if role not in others},
    )


def select_audited(evidence: Evidence, manifest: Manifest) -> Evidence:
    """Select the audited models and rows from a report's sources."""
    models, where = manifest.models, manifest.where
    if models is not None and set(models) != set(evidence.models):
        evidence = evidence.select_model(*models)
    return evidence if where in (None, evidence.selection) else evidence.where(where)


def _require_near(sources: Sequence[str], directory: Path) -> Sequence[str]:
    """Return the sources in a report, if all are in the current folder or beside the report."""
    for source in sources:
        if not _is_near(source, directory) and not _is_recorded(directory):
            raise InputError(
                f"the report names {source} as its evidence, which is outside of this folder and "
                "the report's; if you trust the report, add --evidence with this path"
            )
    return sources


def _is_recorded(directory: Path) -> bool:
    """Return whether the caller's ledger recorded this report: then it is the caller's."""
    place = name_default()
    if place is None or ("://" not in place and not Path(place).is_file()):
        return False
    digest = hash_file(report_path(directory))
    with suppress(GroundfaultError):
        written = (event for event in Ledger(place).events() if event.kind == WRITTEN)
        return any(digest in event.body["files"].values() for event in written)
    return False


def _is_near(source: str, directory: Path) -> bool:
    # reports are written beside their evidence, or where the command was called; of base=logs only
    # the place is opened
    _, place = split_source(source)
    return is_inside(place, (Path.cwd(), directory.resolve().parent))


def _find_table(
    evidence: Places | None, sources: tuple[str, ...], directory: Path
) -> Path | tuple[str | Path, ...]:
    if evidence:
        places = name_places(evidence, sources)
        return Path(places[0]) if len(places) == 1 and not split_source(places[0])[0] else places
    if not sources:
        raise InputError(
            "the report is of a table in memory; say where the evidence is with --evidence"
        )
    if all(split_source(source)[0] for source in sources):
        return tuple(_require_near(sources, directory))
    first = Path(sources[0])
    near = _is_near(sources[0], directory)
    if first.is_absolute() and not (near and first.exists()):
        beside = directory / first.name
        if is_inside(beside, [directory]) and beside.exists():
            return beside
    first = Path(_require_near(sources, directory)[0])
    if not first.exists():
        raise InputError(f"the evidence {first} is not there; say where it is with --evidence")
    return first if len(sources) == 1 else first.parent
