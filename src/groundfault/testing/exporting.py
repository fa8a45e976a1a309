"""What every exporter has to satisfy: it writes one place, whole, and changes nothing else."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from groundfault import exports
from groundfault.auditing.flow import audit
from groundfault.core.plan import Plan
from groundfault.errors import InputError
from groundfault.exports import Exporter, ReportSlices
from groundfault.testing.checks import fail_in, require
from groundfault.testing.worlds import PlantedEffect, World

_EFFECT = PlantedEffect(0, lift=0.6, prevalence=0.4)
_WORLDS = (
    World(units=120, candidates=6, effects=(_EFFECT,)),
    World(units=80, candidates=4),
    World(units=120, candidates=6, effects=(_EFFECT,), gaps=0.1),
    World(units=120, candidates=6, effects=(_EFFECT,), outcomes=3, icc=0.3),
)


def check_exporter(
    exporter: str | Exporter, out: str = "export.json", slices: ReportSlices | None = None
) -> None:
    """Check that an exporter writes what it is asked for, where it is asked to, and nothing else.

    It is given reports with and without confirmed findings, with observations that were not scored,
    and of several models. It has to write the same bytes each time, only at the place named, and to
    say in one line what it wrote. Where the place cannot be written it has to raise `InputError`
    and leave nothing behind.

    Parameters
    ----------
    exporter : str or Exporter
    out : str
        Name of the file or directory to write; give it the suffix that the exporter expects.
    slices : ReportSlices, optional
        A report to export in place of the simulated ones, for exporters that need evidence of a
        certain kind.

    Raises
    ------
    AssertionError
        If something does not hold; the message says what, and for which report.
    """
    exporter = exports.get(exporter)
    require(
        isinstance(exporter.name, str) and exporter.name,
        f"{exporter!r} has no name to be called by",
    )
    # an absolute path would be written to in earnest
    require(Path(out).name == out, f"out={out!r} must be a bare file name: the check has a folder")
    for where, sample in _samples(slices):
        with fail_in(where):
            _check_one(exporter, sample, out)


def _samples(slices: ReportSlices | None) -> Iterator[tuple[str, ReportSlices]]:
    if slices is not None:
        yield "for the report that was passed", slices
        return
    for world in _WORLDS:
        evidence, library = world.evidence(np.random.default_rng(0))
        report = audit(evidence, Plan(judge="holm"), library, finders=(), ledger=None)
        yield f"for a report of the world {world.name!r}", ReportSlices.of(report, evidence)


def _check_one(exporter: Exporter, slices: ReportSlices, out: str) -> None:
    name, before = exporter.name, slices.evidence.hash
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder, "first"), Path(folder, "second")
        # twice, in two places: times, paths and random ids would differ
        for home in (first, second):
            home.mkdir()
            message = exporter.export(slices, home / out)
            require(
                isinstance(message, str) and message and "\n" not in message,
                f"exporter {name!r} does not say in one line what it wrote: {message!r}",
            )
            entries = [p.name for p in home.iterdir()]
            require(entries == [out], f"exporter {name!r} wrote {entries}, not {out} alone")
        require(
            _contents(first) == _contents(second),
            f"exporter {name!r} writes something else the second time",
        )
        blocked = Path(folder, "file")
        blocked.write_bytes(b"")
        _check_refusal(exporter, slices, blocked / out)
        remains = sorted(p.name for p in Path(folder).iterdir())
        require(
            remains == ["file", "first", "second"],
            f"exporter {name!r} leaves files where it cannot write: {remains}",
        )
    require(slices.evidence.hash == before, f"exporter {name!r} changed the evidence")


def _check_refusal(exporter: Exporter, slices: ReportSlices, out: Path) -> None:
    """A place below a file can be written by nobody, whatever the permissions."""
    try:
        exporter.export(slices, out)
    except InputError:
        return
    except Exception as error:
        raise AssertionError(
            f"exporter {exporter.name!r} raises {type(error).__name__}, not InputError, where it "
            f"cannot write: {error}"
        ) from error
    raise AssertionError(f"exporter {exporter.name!r} does not fail where it cannot write")


def _contents(home: Path) -> list[tuple[str, bytes]]:
    files = sorted(p for p in home.rglob("*") if p.is_file())
    return [(str(p.relative_to(home)), p.read_bytes()) for p in files]
