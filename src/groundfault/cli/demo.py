"""``demo``: the main job on data that needs no download."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option(
    "--out",
    type=click.Path(),
    default="groundfault-demo",
    show_default=True,
    help="Folder for the report.",
)
def demo(out: str) -> None:
    """Audit the mistakes of a small classifier, offline, in under half a minute.

    A classifier learns handwritten digits from 200 images and is tested on 1597 others. Declared,
    threshold, category and pairwise candidates are proposed to explain its mistakes; most do not
    hold up, and the report says why.
    """
    from rich.console import Console

    from groundfault.auditing.flow import audit
    from groundfault.cli.demo_data import DECLARED, digits_results
    from groundfault.core.evidence import Evidence
    from groundfault.render.audit_page import make_summary
    from groundfault.render.terminal import show

    console = Console()
    with Console(stderr=True).status("training a classifier on handwritten digits") as status:
        results = _make_folder(out) / "results.parquet"
        digits_results().write_parquet(results)
        evidence = Evidence.from_table(results, id="image", outcome="error")
        report = audit(
            evidence,
            candidates=DECLARED,
            finders=["thresholds", "categories", "interactions:2"],
            robustness=50,
            progress=status.update,
        )
        status.update("drawing the report")
        report.write(out)
    show(make_summary(report, Path(out) / "report.html"), console)
    # the point of the demo: an explanation that looks good and does not hold up
    rejected = next(f for f in report.findings if f.name == "scanned late")
    console.print(
        f"\nA candidate that did not hold up: {rejected.sentence} Why: {rejected.reason}.",
        markup=False,
    )


def _make_folder(out: str) -> Path:
    place = Path(out)
    place.mkdir(parents=True, exist_ok=True)
    return place
