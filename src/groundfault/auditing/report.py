"""Reports: all findings, the limits of the checks, and the manifest to recompute them from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from groundfault.auditing.report_schema import SCHEMA_VERSION, ReportData, to_plain
from groundfault.base.files import replace_folder, save_text, write_text
from groundfault.base.ledger import Ledger
from groundfault.base.reading import read_json_object
from groundfault.base.registry import load_object
from groundfault.core.candidate import Library
from groundfault.core.finding import Finding, Verdict
from groundfault.core.roles import read_roles
from groundfault.errors import InputError, first_line

SUMS = "SHA256SUMS"
"""The file in a report's folder with the digests of the other files, for ``sha256sum --check``.

Alone it shows only damage, since an editor could write it anew. The ledger records the same digests
when the folder is written, and so also shows edits.
"""
WRITTEN = "report_written"
"""Kind of the event that records the digests of a folder."""

# pages depend on audits, so they are found by name: a report does not depend on its pages
_PAGES = {
    "html": "groundfault.render:to_html",
    "markdown": "groundfault.render:to_markdown",
    "outline": "groundfault.render:make_outline",
    "notebook": "groundfault.render.preview_pages:show_report",
}


class Report(ReportData, frozen=True, kw_only=True):
    """The result of an audit: the fields of `ReportData`, and the candidates.

    Attributes
    ----------
    findings : tuple of Finding
        One for each candidate and outcome, without exception: confirmed first, then by size of
        discovery effect.
    library : Library
        The frozen candidates.
    witness : Ledger or None
        The ledger that recorded the audit, and records the files written from it; None in a report
        that was read from a folder, unpickled, or not recorded.
    """

    library: Library
    witness: Ledger | None = None

    @classmethod
    def of(cls, data: ReportData, library: Library, witness: Ledger | None = None) -> Report:
        """Put the content of a report.json and its candidates together."""
        return cls(library=library, witness=witness, **msgspec.structs.asdict(data))

    @classmethod
    def load(cls, place: str | Path) -> Report:
        """Read a report that `write` wrote.

        Parameters
        ----------
        place : path
            The folder, or the report.json in it; library.json has to be beside it.

        Raises
        ------
        InputError
            If the report is missing, or was written by a newer version.
        """
        data = read_report(place).data
        return cls.of(data, Library.load(report_path(place).with_name("library.json")))

    def __reduce__(self) -> tuple[Any, ...]:
        # a ledger's address may hold a password, and its connection cannot be copied
        return Report.of, (self.data, self.library)

    def __repr__(self) -> str:
        count = len(self.modes)
        modes = f"{count} failure mode{'' if count == 1 else 's'}, " if self.mode_search else ""
        return (
            f"<Report: {modes}{len(self.confirmed)} of {len(self.findings)} findings confirmed by"
            f" {self.judge}, {self.n:,} {self.unit}s>"
        )

    def _repr_html_(self) -> str:
        html: str = load_object(_PAGES["notebook"])(self)
        return html

    @property
    def confirmed(self) -> tuple[Finding, ...]:
        """Return the confirmed findings."""
        return tuple(f for f in self.findings if f.confirmed)

    @property
    def weaknesses(self) -> tuple[Finding, ...]:
        """Return confirmed findings of more frequent failures."""
        return tuple(f for f in self.confirmed if not f.is_strength)

    @property
    def strengths(self) -> tuple[Finding, ...]:
        """Return confirmed findings of less frequent failures: where a model does better."""
        return tuple(f for f in self.confirmed if f.is_strength)

    @property
    def data(self) -> ReportData:
        """Return the content of report.json: everything but the candidates themselves."""
        names = ReportData.__struct_fields__
        return ReportData(**{name: getattr(self, name) for name in names})

    def counts(self) -> dict[str, int]:
        """Return how many findings have each verdict."""
        return {str(v): sum(f.verdict is v for f in self.findings) for v in Verdict}

    def matrix(self) -> pl.DataFrame:
        """Return one list of rules for several models: a row a rule, two columns a model.

        Returns
        -------
        polars.DataFrame
            ``rule``, ``meaning``, ``n`` (units inside), ``only`` (the model that fails there more
            often than each other one, as tested, else empty); for each model its failure rate, and
            ``MODEL: mark``, which is ``named``, ``confirmed`` or empty: `MatrixCell`. No rows for a
            single model.
        """
        rows = self.mode_search.matrix if self.mode_search else ()
        fixed: dict[str, pl.DataType | type[pl.DataType]] = {
            "rule": pl.String,
            "meaning": pl.String,
            "n": pl.Int64,
            "only": pl.String,
        }
        models = [cell.model for cell in rows[0].cells] if rows else []
        schema = fixed | {
            name: kind
            for model in models
            for name, kind in ((model, pl.Float64), (f"{model}: mark", pl.String))
        }
        values = [
            (
                *(row.rule, row.meaning, row.n, row.only),
                *(value for cell in row.cells for value in (cell.rate, cell.mark)),
            )
            for row in rows
        ]
        return pl.DataFrame(values, schema=list(schema.items()), orient="row")

    def where_how(self) -> pl.DataFrame:
        """Return where and how runs fail: a row a failure mode, a column a behaviour.

        Returns
        -------
        polars.DataFrame
            ``rule``, ``failing`` (runs that fail inside), and for each behaviour how many of these
            show it.
        """
        rows: dict[str, dict[str, object]] = {}
        for behaviour in self.behaviours:
            for share in behaviour.modes:
                row = rows.setdefault(share.rule, {"rule": share.rule, "failing": share.failing})
                row[behaviour.name] = share.shown
        return pl.DataFrame(list(rows.values()))

    def to_dict(self) -> dict[str, Any]:
        """Return the whole report as plain words and numbers."""
        return to_plain(self.data)

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the whole report as JSON; also written to ``path``, whole or not at all."""
        content = msgspec.to_builtins(self.data)
        return save_text(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False), path)

    def to_frame(self) -> pl.DataFrame:
        """Return the findings as a table, one row each."""
        return pl.DataFrame([_row(f) for f in self.findings], infer_schema_length=None)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """Return the report as Markdown."""
        return save_text(load_object(_PAGES["markdown"])(self), path)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the report as one self-contained HTML page, with figures and without a network."""
        return save_text(load_object(_PAGES["html"])(self), path)

    def write(self, directory: str | Path) -> None:
        """Write report.html, report.md, report.json, library.json and SHA256SUMS into a directory.

        The directory is made if it is missing. Files of an earlier report are replaced together or,
        if a file cannot be written, not at all; other files stay.

        Raises
        ------
        InputError
            If the directory, or the ledger of the audit, cannot be written to, or another process
            is writing into the directory.
        LedgerError
            If the ledger is damaged.
        """
        with replace_folder(directory) as place:
            self.library.freeze(place / "library.json")
            self.to_json(place / "report.json")
            page = load_object(_PAGES["outline"])(self)  # of both, as it takes longest
            save_text(load_object(_PAGES["markdown"])(page), place / "report.md")
            save_text(load_object(_PAGES["html"])(page), place / "report.html")
            digests = write_sums(place)
            if self.witness is not None and self.ledger is not None:
                # before the files are in place, so that the ledger knows all of them
                record_files(self.witness, self.ledger.head, digests)


def _row(finding: Finding) -> dict[str, object]:
    row: dict[str, object] = {
        "name": finding.name,
        "outcome": finding.outcome,
        "verdict": str(finding.verdict),
    }
    for part in ("discovery", "holdout", "full"):
        cell = getattr(finding, part)
        for key in ("on", "off", "on_errors", "off_errors", "lift", "p", "p_adjusted"):
            row[f"{part}_{key}"] = None if cell is None else getattr(cell, key)
    words = ("reason", "rule", "source", "sentence")
    return row | {word: getattr(finding, word) for word in words}


_Json = dict[str, Any]


@dataclass(frozen=True)
class StoredReport:
    """A stored report.

    Attributes
    ----------
    data : ReportData
        Content in the form of this version.
    schema_version : int
        Version of its stored form.
    """

    data: ReportData
    schema_version: int


def report_path(place: str | Path) -> Path:
    """Return the file of a report: the path itself, or report.json in the folder."""
    path = Path(place)
    return path / "report.json" if path.is_dir() else path


def read_report(place: str | Path) -> StoredReport:
    """Read a report that ``Report.write`` or ``Report.to_json`` wrote.

    Parameters
    ----------
    place : path
        The JSON file, or the folder that holds it as report.json.

    Raises
    ------
    InputError
        If the file is missing or not a report, or was written by a newer version.
    """
    path = report_path(place)
    if not path.is_file():
        raise InputError(
            f"there is no report {path}; write one with groundfault audit --out or --json"
        )
    return parse_report(read_json_object(path), str(path))


def parse_report(content: Mapping[str, object], where: str = "the report") -> StoredReport:
    """Check and convert the content of a report.

    Parameters
    ----------
    content : mapping
        The JSON object.
    where : str
        Its name in messages.

    Raises
    ------
    InputError
        If the content is not a report, or was written by a newer version.
    """
    version = content.get("schema_version")
    if type(version) is not int or version < 1:
        raise InputError(f"{where} is not a groundfault report: it has no schema_version")
    if version > SCHEMA_VERSION:
        raise InputError(
            f"{where} has schema version {version}, and this groundfault reads up to"
            f" {SCHEMA_VERSION}; install the groundfault that wrote it"
        )
    try:
        upgraded = dict(content)
        for step in range(version, SCHEMA_VERSION):
            upgraded = _UPGRADES[step](upgraded)
        return StoredReport(msgspec.convert(upgraded, ReportData), version)
    except KeyError as error:
        raise InputError(f"{where} is not a groundfault report: it has no {error}") from None
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise InputError(f"{where} is not a groundfault report: {first_line(error)}") from None


def _upgrade_1(old: _Json) -> _Json:
    """Translate a report of version 1, of groundfault 0.1.0."""
    new = _rename(old, {"library": "candidates"})
    manifest = dict(old["manifest"])
    outcome = manifest.pop("taxonomy", None)
    # 0.1.0 had one kind of derived evidence, claims of a taxonomy, and stored its outcome alone
    manifest["derivation"] = outcome and {"kind": "taxonomy", "settings": {"outcome": outcome}}
    manifest["roles"] = read_roles(manifest["roles"])
    new["manifest"] = manifest
    # renamed since; the values are the same
    new["findings"] = [_rename(row, {"lead": "representative"}) for row in old["findings"]]
    return new | {"schema_version": 2}


def _rename(section: _Json, names: Mapping[str, str]) -> _Json:
    return {names.get(key, key): value for key, value in section.items()}


_UPGRADES: dict[int, Callable[[_Json], _Json]] = {1: _upgrade_1}


def write_sums(folder: Path) -> dict[str, str]:
    """Write SHA256SUMS of all other files of a folder into it, and return their digests by name."""
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name != SUMS]
    digests = {path.name: hash_file(path) for path in files}
    write_text(folder / SUMS, "".join(f"{digests[name]}  {name}\n" for name in digests))
    return digests


def record_files(book: Ledger, head: str, digests: Mapping[str, str]) -> None:
    """Record the files written for the audit whose opening is the event ``head``."""
    book.append(WRITTEN, {"opening": head, "files": dict(digests)})


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
