"""``taxonomy``: clusters of examples by which models fail on them."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import click

from groundfault.cli import taxonomy_regimes, taxonomy_use, taxonomy_words
from groundfault.cli.command import RULE, GroupedCommand, option
from groundfault.cli.options import evidence_options, jobs_option
from groundfault.cli.output import claim_folder, show_progress
from groundfault.cli.reading import choose_ledger, read_evidence
from groundfault.cli.settings import call, list_options
from groundfault.cli.taxonomy_use import examples_options
from groundfault.core.plan import Plan
from groundfault.errors import PlanError

_SETTINGS = (
    "alpha reducer clusterer dimensions imputation frontier score rate level stability "
    "permutations worlds refits bootstraps seed"
).split()

_rule = partial(option, group=RULE)


@click.group()
def taxonomy() -> None:
    """Cluster examples by which models fail on them, and use the clusters."""


@taxonomy.command(
    cls=GroupedCommand,
    first="outcome id model positive_is_good text preset hold_out out",
)
@evidence_options
@examples_options
@option(
    "--text",
    metavar="COL",
    group="Examples",
    help="Column of texts, for labels and for --alpha above 0.",
)
@option(
    "--embedding",
    default="tfidf",
    show_default=True,
    group="Examples",
    help="Embedding of the texts: tfidf, sentence or sentence:MODEL.",
)
@option(
    "--hold-out",
    metavar="MODEL",
    multiple=True,
    group="Claims",
    help="Make clusters without this model, then judge claims about it; repeatable.",
)
@option(
    "--unstable",
    is_flag=True,
    group="Claims",
    help="Judge claims about unpublished clusters too.",
)
@option(
    "--beyond-ability",
    is_flag=True,
    group="Claims",
    help="Judge failures beyond ability and difficulty instead of failures.",
)
@_rule(
    "--preset",
    default="default",
    show_default=True,
    help="Preset of the settings below: default, or paper for FailureScope's procedure.",
)
@_rule("--alpha", type=float, help="Weight of the texts beside failures, from 0 to 1.")
@_rule("--reducer", help="Dimension reduction: signal, none, pca or umap.")
@_rule("--clusterer", help="Clustering: means or hdbscan.")
@_rule("--dimensions", type=int, help="Largest number of dimensions after reduction.")
@_rule(
    "--imputation",
    help="Values for missing answers in the paper's preset: column_mean, row_mean, half, zero or "
    "none.",
)
@_rule(
    "--frontier",
    metavar="MODEL",
    multiple=True,
    help="Keep only examples that this model, or another one named, failed; repeatable.",
)
@_rule("--score", type=float, help="Score from which a try is a pass; default 0.7.")
@_rule(
    "--rate",
    type=float,
    help="Share of passed tries from which an example is passed; default 0.5.",
)
@_rule("--level", type=float, help="Level of the tests against null worlds; default 0.05.")
@_rule(
    "--stability",
    type=float,
    help="Smallest Jaccard index of a published cluster; default 0.6.",
)
@_rule(
    "--permutations",
    type=int,
    help="Number of permutations of the paper's label-fixed test; default 1000.",
)
@_rule("--worlds", type=int, help="Number of null worlds of each kind; default 99.")
@_rule(
    "--refits",
    type=int,
    help="Number of refits on halves of the examples and of the models; default 20.",
)
@_rule(
    "--bootstraps",
    type=int,
    help="Number of resamples of the examples; default 20, 50 in the paper.",
)
@_rule("--seed", type=int, help="Seed of every random draw; default 0, 42 in the paper's preset.")
@list_options(choose_ledger, group="Claims")
@jobs_option()
@option(
    "--out",
    required=True,
    type=click.Path(),
    metavar="DIR",
    help="Write the taxonomy and its report to this folder.",
)
def fit(**options: Any) -> None:
    """Cluster the examples of SOURCE by which models fail on them, and publish stable clusters.

    Clusters are tested against null worlds and against refits on halves of the data. An interrupted
    fit resumes if --out is the same.

    \b
    groundfault taxonomy fit answers.parquet --id id --model-column model --outcome error \\
        --out taxonomy/
    groundfault taxonomy fit answers.parquet ... --text question --alpha 0.1 \\
        --preset paper --reducer pca --out paper/
    """
    from groundfault.render.taxonomy_page import write_taxonomy
    from groundfault.taxonomy.fitting.fit import fit as run
    from groundfault.taxonomy.fitting.settings import Settings

    settings = Settings.preset(options["preset"], **_changes(options))
    place = Path(options["out"])
    resume = place / ".replicates"
    with claim_folder(options["out"]) as new, show_progress(False) as progress:
        assert new is not None
        evidence = read_evidence(options, progress)
        plan = _plan_claims(options, settings, evidence)
        discovery = evidence
        if plan is not None:
            discovery = evidence.select_model(*plan.split_models(evidence)[0])
        clusters = run(
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
        claims_report = (
            None if plan is None else _judge_claims(clusters, evidence, plan, options, progress)
        )
        progress("writing the report")
        write_taxonomy(
            clusters,
            new,
            title=", ".join(Path(source).name for source in options["sources"]),
            claims=claims_report,
        )
    shutil.rmtree(resume, ignore_errors=True)
    _print_result(clusters, claims_report, place, options)


taxonomy_use.attach(taxonomy)
taxonomy_words.attach(taxonomy)
taxonomy_regimes.attach(taxonomy)


def _changes(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in _SETTINGS if options[name] not in (None, ())}


def _some(evidence: Any) -> str:
    return ", ".join(evidence.models[:12]) + (", ..." if len(evidence.models) > 12 else "")


def _judge_claims(
    result: Any, evidence: Any, plan: Plan, options: dict[str, Any], progress: Any
) -> Any:
    """The report on claims about held-out models; None where there is no cluster to judge."""
    from groundfault.taxonomy.use.claims import judge_claims

    if not (result.clusters if options["unstable"] else result.published):
        return None
    of: Any = "excess" if options["beyond_ability"] else "failures"
    return judge_claims(
        result,
        evidence,
        plan.holdout_models,
        plan,
        outcome=of,
        unstable=options["unstable"],
        ledger=call(choose_ledger, options),
        reopen=options["reopen"],
        progress=progress,
    )


def _plan_claims(options: dict[str, Any], settings: Any, evidence: Any) -> Plan | None:
    """The plan that holds out the models of --hold-out; None where none is named."""
    holdout_models = options["hold_out"]
    unknown = [name for name in holdout_models if name not in evidence.models]
    if unknown:
        raise PlanError(f"--hold-out {unknown[0]}: no such model; the models are {_some(evidence)}")
    if holdout_models and (settings.alpha > 0 or settings.reducer == "umap"):
        raise PlanError(
            "--hold-out needs clusters that a new example can be assigned to by answers alone, "
            f"which --reducer {settings.reducer} with --alpha {settings.alpha:g} does not give; "
            "take --alpha 0, and the reducer pca, signal or none"
        )
    for name in ("unstable", "beyond_ability", "ledger", "no_ledger", "reopen"):
        flag = "--" + name.replace("_", "-")
        if options[name] and not holdout_models:
            raise PlanError(
                f"{flag} is about claims: name the models to judge them on (--hold-out)"
            )
    return Plan(holdout_axis="models", holdout_models=holdout_models) if holdout_models else None


def _print_result(result: Any, claims_report: Any, place: Path, options: dict[str, Any]) -> None:
    from groundfault.render import words
    from groundfault.render.taxonomy_page import list_exclusions

    click.echo(result.verdict)
    if not result.published:
        click.echo(
            "what one model alone fails on is no cluster of models: "
            "groundfault audit --model NAME looks for it"
        )
    for cluster in result.clusters:
        mark = "published" if cluster.published else "unstable"
        click.echo(
            f"  {words.clean(cluster.name)}  {words.plural(cluster.size, 'example')}  {mark}"
        )
    aside = ", ".join(f"{len(names):,} {what}" for what, names in list_exclusions(result).items())
    if aside:
        click.echo(f"set apart: {aside}")
    if claims_report is not None:
        click.echo(
            f"{claims_report.counts()['confirmed']} of {len(claims_report.findings)} claims "
            "about held-out models are confirmed"
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
