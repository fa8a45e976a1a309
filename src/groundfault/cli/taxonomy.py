"""``taxonomy``: clusters of examples by which models fail on them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import click

from groundfault.cli import taxonomy_regimes, taxonomy_use, taxonomy_words
from groundfault.cli.options import (
    evidence_options,
    read_evidence,
    require_writable,
    show_progress,
)
from groundfault.errors import PlanError

_SETTINGS = (
    "alpha reducer clusterer dimensions imputation frontier score rate level stability permutations worlds refits "
    "bootstraps seed".split()
)


@click.group()
def taxonomy() -> None:
    """Failure modes: which examples do models fail on together, beyond ability."""


@taxonomy.command()
@evidence_options
@click.option(
    "--examples", metavar="FILE", help="A table that describes the examples, joined by --id."
)
@click.option(
    "--text", metavar="COL", help="What an example says: for labels, and for --alpha above 0."
)
@click.option(
    "--embedding",
    default="tfidf",
    show_default=True,
    help="How texts become vectors; or sentence[:MODEL].",
)
@click.option("--vectors", metavar="COL", help="Vectors of the examples, in place of their texts.")
@click.option("--benchmark", metavar="COL", help="Which benchmark an example comes from.")
@click.option(
    "--hold-out",
    metavar="MODEL",
    multiple=True,
    help="Make clusters without it, then judge claims about it.",
)
@click.option(
    "--unstable", is_flag=True, help="Judge claims about clusters that are not published, too."
)
@click.option(
    "--beyond-ability",
    is_flag=True,
    help="Judge failures beyond ability and difficulty, not failures.",
)
@click.option(
    "--preset",
    default="default",
    show_default=True,
    help="default, or paper: FailureScope's procedure.",
)
@click.option("--alpha", type=float, help="Weight of what examples say, from 0 to 1.")
@click.option("--reducer", help="signal, none, pca or umap.")
@click.option("--clusterer", help="means or hdbscan.")
@click.option("--dimensions", type=int, help="Of the reduction, at most.")
@click.option(
    "--imputation",
    help="Of holes, for the paper's preset: column_mean, row_mean, half, zero or none.",
)
@click.option(
    "--frontier",
    metavar="MODEL",
    multiple=True,
    help="Keep only what one of these failed; repeatable.",
)
@click.option("--score", type=float, help="A try passes from this score on [0.7].")
@click.option(
    "--rate", type=float, help="A model passes an example from this share of its tries on [0.5]."
)
@click.option("--level", type=float, help="Of the tests against null worlds [0.05].")
@click.option("--stability", type=float, help="Least Jaccard index of a published cluster [0.6].")
@click.option("--permutations", type=int, help="Of the paper's label-fixed test [1000].")
@click.option("--worlds", type=int, help="Null worlds of each kind [99].")
@click.option("--refits", type=int, help="On halves of examples and of models [20].")
@click.option("--bootstraps", type=int, help="Resamples of the examples [20; paper 50].")
@click.option("--seed", type=int, help="Of every random act [0; paper 42].")
@click.option("--jobs", type=int, default=-1, show_default=True, help="Processes (-1: all cores).")
@click.option(
    "--out",
    required=True,
    type=click.Path(),
    metavar="DIR",
    help="Write the taxonomy and its report here.",
)
def fit(**options: Any) -> None:
    """Cluster the examples of SOURCE by which models fail on them, and say which clusters are real
    and stay.

    A fit that was interrupted goes on where it stopped when it is run again with the same --out.

    \b
    groundfault taxonomy fit answers.parquet --id id --model-column model --outcome error --out taxonomy/
    groundfault taxonomy fit answers.parquet ... --text question --alpha 0.1 --preset paper --reducer pca --out paper/
    """
    from groundfault.render.taxonomy import write
    from groundfault.taxonomy.fitting.fit import fit as run
    from groundfault.taxonomy.fitting.settings import Settings

    require_writable(options["out"], directory=True)
    settings = Settings.preset(options["preset"], **_changes(options))
    place = Path(options["out"])
    resume = place / ".replicates"
    with show_progress(False) as progress:
        evidence = read_evidence(options, progress)
        holdout_models = options["hold_out"]
        _check_claims(options, settings, evidence)
        discovery = (
            evidence.select_model(*(m for m in evidence.models if m not in holdout_models))
            if holdout_models
            else evidence
        )
        fitted_taxonomy = run(
            discovery,
            settings,
            examples=options["examples"],
            text=options["text"],
            vectors=options["vectors"],
            embedding=options["embedding"],
            benchmark=options["benchmark"],
            jobs=options["jobs"],
            resume=resume,
            progress=progress,
        )
        claims_report = _judge_claims(fitted_taxonomy, evidence, options, progress) if holdout_models else None
        progress("writing the report")
        write(
            fitted_taxonomy,
            place,
            title=", ".join(Path(source).name for source in options["sources"]),
            claims=claims_report,
        )
    shutil.rmtree(resume, ignore_errors=True)
    _say(fitted_taxonomy, claims_report, place, options)


taxonomy_use.attach(taxonomy)
taxonomy_words.attach(taxonomy)
taxonomy_regimes.attach(taxonomy)


def _changes(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in _SETTINGS if options[name] not in (None, ())}


def _some(evidence: Any) -> str:
    return ", ".join(evidence.models[:12]) + (", ..." if len(evidence.models) > 12 else "")


def _judge_claims(fitted_taxonomy: Any, evidence: Any, options: dict[str, Any], progress: Any) -> Any:
    """The report on claims about held-out models; None where there is no cluster to claim anything
    of.
    """
    from groundfault.taxonomy.use.claims import claims

    if not (fitted_taxonomy.clusters if options["unstable"] else fitted_taxonomy.published):
        return None
    of: Any = "excess" if options["beyond_ability"] else "failures"
    return claims(
        fitted_taxonomy,
        evidence,
        options["hold_out"],
        outcome=of,
        unstable=options["unstable"],
        progress=progress,
    )


def _check_claims(options: dict[str, Any], settings: Any, evidence: Any) -> None:
    holdout_models = options["hold_out"]
    unknown = [name for name in holdout_models if name not in evidence.models]
    if unknown:
        raise PlanError(
            f"--hold-out {unknown[0]}: there are no results of it; the models are {_some(evidence)}"
        )
    if holdout_models and (settings.alpha > 0 or settings.reducer == "umap"):
        raise PlanError(
            "--hold-out needs clusters that another example can be placed in by answers alone: those of "
            f"--reducer {settings.reducer} and --alpha {settings.alpha:g} have no such rule; take --alpha 0, and pca, "
            "signal or none"
        )
    for option, flag in (("unstable", "--unstable"), ("beyond_ability", "--beyond-ability")):
        if options[option] and not holdout_models:
            raise PlanError(
                f"{flag} is about claims: name the models to judge them on (--hold-out)"
            )


def _say(fitted_taxonomy: Any, claims_report: Any, place: Path, options: dict[str, Any]) -> None:
    from groundfault.render import words
    from groundfault.render.taxonomy import set_apart

    click.echo(fitted_taxonomy.verdict)
    for cluster in fitted_taxonomy.clusters:
        mark = "published" if cluster.published else "unstable"
        click.echo(
            f"  {words.clean(cluster.name)}  {words.plural(cluster.size, 'example')}  {mark}"
        )
    aside = ", ".join(f"{len(names):,} {what}" for what, names in set_apart(fitted_taxonomy).items())
    if aside:
        click.echo(f"set apart: {aside}")
    if claims_report is not None:
        click.echo(
            f"{claims_report.counts()['confirmed']} of {len(claims_report.findings)} claims about held-out models are confirmed"
        )
    elif options["hold_out"]:
        none = (
            "there is no cluster"
            if options["unstable"]
            else "no cluster is published (--unstable judges all)"
        )
        click.echo(
            f"no claim about {', '.join(map(words.clean, options['hold_out']))} was judged: {none}"
        )
    click.echo(f"written to {place / 'report.html'}")
