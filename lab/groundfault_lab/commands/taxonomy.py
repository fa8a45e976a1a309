"""``taxonomy``: clusters of examples by which models fail on them, their names and new tasks."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
import polars as pl

from groundfault.base.long_work import Progress
from groundfault.cli import shared
from groundfault.cli.command import RULE, Group, Options
from groundfault.cli.output import Result, claim_folder
from groundfault.cli.reading import choose_ledger, read_evidence
from groundfault.cli.settings import Flag, OutFolder, call, derive_options, own_options
from groundfault.core.evidence import Evidence
from groundfault.core.plan import Plan
from groundfault.errors import PlanError, list_some, require_name
from groundfault.render import words
from groundfault.render.words import plural
from groundfault_lab.commands import taxonomy_use
from groundfault_lab.commands.columns import read_columns
from groundfault_lab.commands.taxonomy_use import examples_options
from groundfault_lab.taxonomy.fitting.fit import fit as cluster_examples
from groundfault_lab.taxonomy.fitting.settings import Settings
from groundfault_lab.taxonomy.fitting.taxonomy import Taxonomy
from groundfault_lab.taxonomy.words.generation import generate as generate_tasks
from groundfault_lab.taxonomy.words.labelling import Labelling, write_labels, write_taxonomy
from groundfault_lab.taxonomy.words.new_tasks import GeneratedTasks

if TYPE_CHECKING:
    from groundfault.auditing.report import Report

_PYTHON_ALONE = "signature min_cluster_size min_samples core split parameters".split()
_SETTINGS = [field.name for field in fields(Settings) if field.name not in _PYTHON_ALONE]
# a setting that is left out is the preset's
_UNSET = {"default": None, "show_default": False}
_CHANGES: dict[str, Any] = dict.fromkeys(_SETTINGS, _UNSET) | dict.fromkeys(_PYTHON_ALONE)


@click.group(cls=Group)
def taxonomy() -> None:
    """Name failure modes of many models; cluster their failures."""


@taxonomy.command(first="outcome id model positive_is_good text preset hold_out out")
@shared.evidence_options
@examples_options
@derive_options(cluster_examples, "text", group="Examples", metavar="COL")
@derive_options(cluster_examples, "embedding", group="Examples")
@own_options
@derive_options(Settings, group=RULE, metavar="MODEL", **_CHANGES)
@derive_options(choose_ledger, group="Claims")
@shared.jobs_option()
def fit(
    *,
    hold_out: tuple[str, ...] = (),
    unstable: bool = False,
    beyond_ability: bool = False,
    preset: str = "default",
    out: str,
    progress: Progress,
    options: Options,
) -> Result:
    """Name the failure modes of many models, and cluster examples.

    Leaves are rules over the columns of SOURCE in which models fail beyond their ability; each
    lists these models. Clusters are examples that the same models fail on, tested against null
    worlds and against refits on halves of the data. An interrupted fit resumes if --out is the
    same.

    \b
    groundfault lab taxonomy fit answers.parquet --id id --model-column model --outcome error \\
        --out taxonomy/
    groundfault lab taxonomy fit answers.parquet ... --text question --alpha 0.1 \\
        --preset paper --reducer pca --out paper/

    Claims
    ------
    hold_out : MODEL
        Make clusters without this model, then judge claims about it; repeatable.
    unstable
        Judge claims about unpublished clusters too.
    beyond_ability
        Judge failures beyond ability and difficulty instead of failures.

    Rule
    ----
    preset : NAME
        Preset of the settings below: default, or paper for FailureScope's procedure.

    Output
    ------
    out : DIR
        Write the taxonomy and its report to this folder.
    """
    changes = {name: options[name] for name in _SETTINGS}
    settings = Settings.preset(
        preset, **{name: value for name, value in changes.items() if value not in (None, ())}
    )
    claims = {"unstable": unstable, "beyond_ability": beyond_ability}
    resume = Path(out) / ".replicates"
    with claim_folder(out) as new:
        assert new is not None
        evidence = read_evidence(options, progress)
        plan = _plan_claims(hold_out, claims | options, settings, evidence)
        discovery = evidence
        if plan is not None:
            discovery = evidence.select_model(*plan.split_models(evidence)[0])
        clusters = call(
            cluster_examples, options, discovery, settings, resume=resume, progress=progress
        )
        report = None
        if plan is not None and (clusters.clusters if unstable else clusters.published):
            from groundfault_lab.taxonomy.use.claims import judge_claims

            report = judge_claims(
                clusters,
                evidence,
                plan.holdout_models,
                plan,
                outcome="excess" if beyond_ability else "failures",
                unstable=unstable,
                ledger=call(choose_ledger, options),
                reopen=options["reopen"],
                progress=progress,
            )
        progress("writing the report")
        title = ", ".join(Path(source).name for source in options["sources"])
        write_taxonomy(clusters, new, title=title, claims=report)
    shutil.rmtree(resume, ignore_errors=True)
    return Result(_outline_clusters(clusters, report, hold_out, unstable, out), then=("open", out))


def _plan_claims(
    holdout_models: tuple[str, ...], options: Options, settings: Settings, evidence: Evidence
) -> Plan | None:
    """Return the plan that holds out the models of --hold-out; None where none is named."""
    for name in holdout_models:
        require_name("model", name, evidence.models, where="--hold-out")
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


def _outline_clusters(
    result: Taxonomy, claims: Report | None, models: tuple[str, ...], unstable: bool, out: str
) -> Iterator[str]:
    from groundfault_lab.pages.taxonomy_page import list_exclusions

    yield result.verdict
    if not result.published:
        yield (
            "what one model alone fails on is no cluster of models: "
            "groundfault audit --model NAME looks for it"
        )
    for cluster in result.clusters:
        mark = "published" if cluster.published else "unstable"
        if cluster.rule:
            mark = list_some(cluster.models)
        yield f"  {cluster.name}  {words.plural(cluster.size, 'example')}  {mark}"
    aside = ", ".join(f"{len(names):,} {what}" for what, names in list_exclusions(result).items())
    if aside:
        yield f"set apart: {aside}"
    if claims is not None:
        yield (
            f"{claims.counts()['confirmed']} of {len(claims.findings)} claims "
            "about held-out models are confirmed"
        )
    elif models:
        published = "no cluster is published (--unstable judges all)"
        none = "there is no cluster" if unstable else published
        yield f"no claim about {', '.join(models)} was judged: {none}"
    yield f"written to {Path(out) / 'report.html'}"


@taxonomy.command()
@own_options
@shared.call_options
def label(
    directory: Annotated[str, Flag("DIR")],
    *,
    model: str,
    second: str | None = None,
    text: str | None = None,
    check_size: int = 5,
    progress: Progress,
    options: Options,
) -> Result:
    """Let a model name each cluster of DIR.

    A second one checks the names. DIR is a folder that taxonomy fit wrote. The model sees the
    tasks nearest to a cluster's centre. Labels are written to labels.json and the report there,
    beside the words that are frequent in a cluster. After an interruption, run it again: no
    question is asked twice.

    \b
    groundfault lab taxonomy label taxonomy/ --model openai/gpt-4o-mini --second openai/gpt-4o

    Output
    ------
    model : TARGET
        Model that writes the labels, such as openai/gpt-4o-mini.
    second : TARGET
        Model that checks them; by default the same one with another seed.
    text : COL
        Column of texts; by default the only column of prose.
    check_size : N
        Number of members, and of others, that a check of a label shows.
    """
    from groundfault_lab.taxonomy.words.labeller import label as run

    clusters = Taxonomy.load(directory)
    labelling = run(
        clusters,
        model,
        second=second,
        text=text,
        members=check_size,
        progress=progress,
        **_read_call_settings(options, directory),
    )
    write_labels(clusters, directory, labelling)
    return Result(_outline_labels(labelling, directory))


def _outline_labels(labelling: Labelling, directory: str) -> Iterator[str]:
    from groundfault_lab.pages.taxonomy_page import describe_labels

    for each in labelling.labels:
        title = (
            f"{each.label} ({each.mode}, {each.bloom})"
            if each.label
            else f"{each.status}: {each.reason}"
        )
        yield f"  cluster {each.cluster}  {title}{'' if each.published else '  unstable'}"
    yield from describe_labels(labelling)
    yield f"written to {Path(directory) / 'labels.json'} and the report"


def _read_call_settings(options: Options, home: str) -> dict[str, Any]:
    """Return how a model is called; the calls are recorded in this folder where none is named."""
    record = options["record"] or Path(home) / "calls.db"
    return call(shared.list_call_settings, options, record=record)


@taxonomy.command(first="clusters model kinds text answer count variants out")
@derive_options(
    generate_tasks,
    "clusters kinds text answer solution count variants",
    group="Tasks",
    metavar="COL",
    clusters={"flag": "--cluster", "type": int},
    kinds={"flag": "--kind", "metavar": "NAME"},
)
@own_options
@derive_options(generate_tasks, "model solver solves", group="Model calls", metavar="TARGET")
@shared.call_options
def generate(
    directory: Annotated[str, Flag("DIR")],
    *,
    against: tuple[str, ...] = (),
    out: OutFolder,
    progress: Progress,
    options: Options,
) -> Result:
    """Make new tasks from clusters of DIR.

    They are variants by rule and, with a model, new tasks.

    \b
    by rule   numbers, names, options, sentences, distractor, step
    by model  easy, medium, hard; rephrase, swap, reorder, complexity

    TASKS gets tasks.jsonl and tasks.py, which Inspect runs, and candidates.jsonl: every candidate
    and its status, also those that were rejected or whose answer needs a check.

    \b
    groundfault lab taxonomy generate taxonomy/ --cluster 3 --answer answer --out tasks/
    groundfault lab taxonomy generate taxonomy/ --cluster 3 --answer answer --out tasks/ \\
        --model openai/gpt-4o

    Tasks
    -----
    against : FILE
        Table with more texts that must not be copied, in the column --text; repeatable.

    Output
    ------
    out : TASKS
        Write the tasks and the account of all candidates to this folder.
    """
    from groundfault_lab.taxonomy.words.inspect_task import write

    clusters = Taxonomy.load(directory)
    keys = (options["answer"], options["solution"])
    column = clusters.matrix.find_text_column(options["text"], keys)
    texts = {name: text for file in against for name, text in _read_texts(file, column)}
    generation = call(
        generate_tasks,
        options,
        clusters,
        against=texts,
        progress=progress,
        **_read_call_settings(options, out),
    )
    write(generation, out)
    return Result(_outline_tasks(generation, any(keys), out))


def _outline_tasks(generation: GeneratedTasks, is_keyed: bool, out: str) -> Iterator[str]:

    for how, counts in generation.counts().items():
        counts_text = ", ".join(f"{n:,} {status.replace('_', ' ')}" for status, n in counts.items())
        yield f"  {how:<11} {counts_text}"
    for how, reasons in generation.skipped.items():
        for reason, number in reasons.items():
            yield f"  {how:<11} not of {plural(number, 'example')}: {reason}"
    # an unpublished cluster did not repeat on other data, and tasks made from it may test nothing
    shaky = sorted(
        {task.cluster for task in generation.tasks} & set(generation.settings["unstable"])
    )
    if shaky:
        names = ", ".join(map(str, shaky))
        yield f"note: not published, so perhaps no failure mode: cluster {names}"
    if not is_keyed:
        yield "note: no column of answers is named (--answer), so few variants by rule can be keyed"
    yield (
        f"{len(generation.keyed):,} of {plural(len(generation.tasks), 'candidate')} "
        f"are keyed: written to {out}"
    )


def _read_texts(file: str, column: str) -> list[tuple[str, str]]:
    """Return the texts of a table, each under the name of its file and row."""
    texts = read_columns(file, column, text=(column,))[column].cast(pl.String).to_list()
    return [(f"{Path(file).name}, row {i}", text) for i, text in enumerate(texts, start=1) if text]


for _command in taxonomy_use.COMMANDS:
    taxonomy.add_command(_command)
