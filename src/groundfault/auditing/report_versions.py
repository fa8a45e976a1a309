"""Reading report.json, of this version of its form and of older ones: the only place that does.

Each older version is changed into the next one by a function in `_UPGRADES`, which renames and
adds keys and touches no value. A report of a newer version is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from groundfault.auditing.report_schema import SCHEMA_VERSION, ReportData
from groundfault.base.reading import read_json_object
from groundfault.errors import InputError, first_line

_Json = dict[str, Any]


@dataclass(frozen=True)
class StoredReport:
    """A report as it was stored.

    Attributes
    ----------
    data : ReportData
        In the form of this version.
    schema_version : int
        Of the form it was stored in.
    """

    data: ReportData
    schema_version: int


def report_path(place: str | Path) -> Path:
    """The file of a report: the path itself, or report.json in the folder."""
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
        If there is none, it is no report, or it was written by a newer version.
    """
    path = report_path(place)
    if not path.is_file():
        raise InputError(
            f"there is no report {path}; write one with groundfault audit --out or --json"
        )
    return parse_report(read_json_object(path), str(path))


def parse_report(content: Mapping[str, Any], where: str = "the report") -> StoredReport:
    """Check and convert the content of a report.

    Parameters
    ----------
    content : mapping
        The JSON object.
    where : str
        What messages call it.

    Raises
    ------
    InputError
        If it is no report, or was written by a newer version.
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
    """Version 1, of groundfault 0.1.0."""
    new = _rename(old, {"library": "candidates"})
    manifest = dict(old["manifest"])
    outcome = manifest.pop("taxonomy", None)
    # 0.1.0 had one kind of derived evidence, claims of a taxonomy, and stored its outcome alone
    manifest["derivation"] = outcome and {"kind": "taxonomy", "settings": {"outcome": outcome}}
    manifest["roles"] = _rename(
        manifest["roles"], {"allow_leak": "allow_leakage", "empty": "null_outcome"}
    )
    new["manifest"] = manifest
    # renamed since; the values are the same
    new["findings"] = [_rename(row, {"lead": "representative"}) for row in old["findings"]]
    return new | {"schema_version": 2}


def _rename(section: _Json, names: Mapping[str, str]) -> _Json:
    return {names.get(key, key): value for key, value in section.items()}


_UPGRADES: dict[int, Callable[[_Json], _Json]] = {1: _upgrade_1}
