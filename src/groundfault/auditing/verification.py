"""Verification: recompute a report from its manifest and evidence, and say whether it
reproduces.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groundfault.auditing.flow import audit
from groundfault.base.json_diff import differences_of
from groundfault.base.ledger import Ledger
from groundfault.core.candidate import Library
from groundfault.core.evidence import Evidence
from groundfault.core.plan import Plan
from groundfault.core.roles import LISTS
from groundfault.errors import InputError, LedgerError

# what may differ between two machines that agree on every finding
_VOLATILE = ("ledger", "groundfault_version")
_VOLATILE_MANIFEST = ("python", "numpy", "polars", "sources")


@dataclass(frozen=True)
class Verification:
    """Whether a report reproduces.

    Attributes
    ----------
    reproduces : bool
    differences : tuple of str
        What differs, each as "where: reported, recomputed"; the first hundred.
    ledger : str
        What the ledger says of the report.
    """

    reproduces: bool
    differences: tuple[str, ...]
    ledger: str


def verify(
    directory: str | Path, *, evidence: str | Path | None = None, ledger: str | Path | None = None
) -> Verification:
    """Recompute a report and compare every number, verdict and sentence.

    Parameters
    ----------
    directory : path
        Where ``Report.write`` wrote report.json and library.json. Of claims about a taxonomy's
        clusters, below the directory of the taxonomy.
    evidence : path, optional
        Where the evidence is now, if it has moved.
    ledger : path, optional
        The ledger to check the report's entry against; left out, the one the report names, where it
        still exists.

    Raises
    ------
    InputError
        If the directory holds no report, or its evidence is not there.
    """
    place = Path(directory)
    reported = load_report(place)
    library = Library.load(place / "library.json")
    try:
        models, compare = reported["manifest"]["models"], reported["manifest"]["compare"]
        plan = Plan.from_settings(reported["plan"])
        splits = (reported["robustness"] or {}).get("splits", 0)
    except (KeyError, TypeError) as error:
        raise InputError(
            f"{place / 'report.json'} is not a groundfault report: no {error}"
        ) from None
    found = read_again(reported, place, evidence)
    about = reported["manifest"].get("taxonomy")
    if about is not None:
        from groundfault.taxonomy.fitting.taxonomy import Taxonomy
        from groundfault.taxonomy.use.claims import answered, marked

        found = answered(Taxonomy.load(place.resolve().parent), found, models or (), about)
    elif models is not None and set(models) != set(found.models):
        found = found.select_model(*models)
    report = audit(
        found,
        plan,
        library,
        finders=(),
        compare=tuple(compare) if compare else None,
        robustness=splits,
    )
    again = (report if about is None else marked(report, about)).to_dict()
    differences = list(differences_of(_stable(reported), _stable(json.loads(json.dumps(again)))))
    said, sound = _check_ledger(reported.get("ledger"), ledger)
    return Verification(not differences and sound, tuple(differences[:100]), said)


def load_report(directory: str | Path) -> dict[str, Any]:
    """The report that ``Report.write`` wrote into a directory, as plain words and numbers.

    Raises
    ------
    InputError
        If there is none.
    """
    path = Path(directory) / "report.json"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"no report here: {path}: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise InputError(f"{path} is not a groundfault report")
    return data


def read_again(
    reported: dict[str, Any], directory: str | Path, evidence: str | Path | None = None
) -> Evidence:
    """The evidence of a report, read as it was read for it; all models, also those the report is
    not of.

    Parameters
    ----------
    reported : dict
        From `load_report`.
    directory : path
        Where the report is.
    evidence : path, optional
        Where the evidence is now, if it has moved.

    Raises
    ------
    InputError
        If the evidence is not there.
    """
    try:
        manifest = reported["manifest"]
        roles, sources, reading = (
            dict(manifest["roles"]),
            manifest["sources"],
            manifest.get("reading"),
        )
    except (KeyError, TypeError) as error:
        raise InputError(
            f"{Path(directory) / 'report.json'} is not a groundfault report: no {error}"
        ) from None
    if reading is not None:
        asked = {role: roles[role] for role in ("group", "split", *LISTS)}
        return Evidence.from_logs(*([evidence] if evidence else sources), **reading, **asked)
    if roles.pop("numbered", False):
        roles["id"] = None
    return Evidence.from_table(_source(evidence, sources, Path(directory)), **roles)


def _source(evidence: str | Path | None, sources: list[str], place: Path) -> Path:
    if evidence is not None:
        return Path(evidence)
    if not sources:
        raise InputError(
            "the report is of a table in memory; say where the evidence is with --evidence"
        )
    first = Path(sources[0])
    if first.is_absolute() and not first.exists() and (place / first.name).exists():
        return place / first.name
    if not first.exists():
        raise InputError(f"the evidence {first} is not there; say where it is with --evidence")
    return first if len(sources) == 1 else first.parent


def _stable(report: dict[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in report.items() if k not in _VOLATILE}
    kept["manifest"] = {k: v for k, v in report["manifest"].items() if k not in _VOLATILE_MANIFEST}
    return kept


def _check_ledger(entry: dict[str, Any] | None, ledger: str | Path | None) -> tuple[str, bool]:
    if entry is None:
        return "the opening of the holdout was not recorded", True
    path = ledger or entry.get("path")
    if path is None or ("://" not in str(path) and not Path(path).exists()):
        return f"the ledger {path} is not there to be checked; name it with --ledger", True
    try:
        Ledger(path).check(head=entry["head"])
    except (LedgerError, InputError) as error:
        return f"the ledger does not bear the report out: {error}", False
    return f"the ledger {path} is unbroken and holds this opening", True
