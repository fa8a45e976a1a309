"""``study``: a paper's tables, regenerated."""

from __future__ import annotations

from functools import partial
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import click

from groundfault.base.registry import Registry
from groundfault.cli import shared
from groundfault.cli.command import Options, command
from groundfault.cli.output import Result, show_progress
from groundfault.cli.settings import Count, OutFolder, Separated, derive_options, own_options
from groundfault.errors import InputError, MissingExtraError, PlanError
from groundfault.render.words import plural

# a study is a function of `progress` and of the options it takes; one that can be resumed takes
# `keep`, the file of what is done, and one of a user's own results takes `evidence`. It gives back
# a `groundfault_studies.tables.PaperStudy`
STUDIES = Registry("study", "groundfault.studies", {})


Names = Annotated[str | None, Separated(str)]
Numbers = Annotated[str | None, Separated(int)]


def _list_study_settings(
    *,
    shared: str | None = None,
    splits: Count | None = None,
    replicates: Count | None = None,
    seeds: Count | None = None,
    first_seed: Annotated[int, click.IntRange(0)] | None = None,
    judge: str | None = None,
    model: str | None = None,
    pairs: str | None = None,
    pipeline: str | None = None,
    quick: bool | None = None,
    methods: Names = None,
    models: Names = None,
    sizes: Numbers = None,
    only: Numbers = None,
    stored: bool | None = None,
    jobs: int | None = None,
) -> None:
    """List the options of studies; each study takes some of them.

    Input
    -----
    shared : DIR
        Folder of the data; by default $GROUNDFAULT_SHARED, or ../shared/data.
    pairs : FILE
        For deim: TOML file of data sets and trained models; by default those shipped.
    pipeline : NAME
        For deim: name of the spaCy pipeline; default en_core_web_sm.
    methods : NAMES
        For modes and mode-worlds: methods; for sequential: policies; all separated by commas.
    models : NAMES
        For modes: collections, separated by commas; default all.
    model : NAME
        For janus: model that answers generated packets, such as openai/gpt-4o-mini or hf/NAME; for
        perturbations: model to ask, by default the recorded answers of a small chat model.

    Rule
    ----
    splits : N
        Number of random splits for lines on robustness; default 200.
    replicates : N
        Number of simulated audits of each setting, of samples of each size, or of trials.
    seeds : N
        Number of trainings of a model, or of runs of probes.
    first_seed : N
        For discover and improve: seed of the first training; default 0.
    judge : NAME
        For finders: rank them by what this judge confirms, instead of the tables.
    quick
        Run a small trial of minutes, without conclusions.
    sizes : N,N,...
        For modes: rows of a sample; default 500,2000,8000.
        For janus with --model: rows of each table of a packet; default 40.
    only : N,N,...
        For attacks: numbers of the promises to attack; for sequential: burn-ins, of 10, 40 and 70;
        default all.

    Output
    ------
    stored
        For modes, mode-worlds, attacks and descriptions: run nothing, show what --out holds so far.
    jobs : N
        Number of processes; default 1; results do not depend on it.
    """


@command(first="shared replicates models methods sizes jobs out json_path")
@derive_options(_list_study_settings)
@own_options
@shared.json_option("the study")
def study(
    name: str, *, out: OutFolder | None = None, json_path: str | None, options: Options
) -> Result:
    """Regenerate a paper's tables.

    The numbers that the paper prints stand beside them. NAME is the study:

    \b
    janus, finders, discover, improve, taxonomy, sequential, probe-policies
    failure-scope    clusters of failures, also where the true modes are known
    deim             discovery, improvement and explanation of errors, also yours
    sequential-pool  policies beside the records of the reference
    label-cost       labels of sequential audits, beside the paper's best
    validity         error rates of sequential audits
    probe-networks   policies on two real networks
    probes           the whole protocol against a scripted model
    perturbations    changes of a question that change a chat model's answer
    modes            methods that name why real models and programs fail
    mode-worlds      failure modes where the truth is simulated
    grader-labels    labels that a cheap grader saves
    descriptions     by a language model, with annotators that err
    attacks          worlds made to break promises

    Without its data a study shows the tables that need none, and the exit status is 2. To resume,
    name the same --out; failure-scope, discover, sequential, sequential-pool and label-cost show
    their tables so far on standard error.

    \b
    groundfault lab study janus --out tables/

    Output
    ------
    out : DIR
        Write NAME.md, NAME.json and figures to this folder.
    """
    if not STUDIES.names():
        raise MissingExtraError(
            "no study is installed: the studies are a distribution of their own. In a checkout of "
            "groundfault, run: pip install ./lab ./studies"
        )
    run = STUDIES.get(name)
    settings = {key: value for key, value in options.items() if value is not None}
    # each study has settings of its own: one that it lacks is an error, not ignored
    takes = signature(run).parameters
    for key in settings.keys() - takes.keys():
        option = key.replace("_", "-")
        raise PlanError(f"the study {name!r} does not use --{option}; leave it out")
    if out and "keep" in takes:
        settings["keep"] = Path(out) / f"{name}.rows.jsonl"
    if "show" in takes:
        settings["show"] = partial(_show_so_far, out=out)
    with show_progress(json_path == "-", lines=True) as progress:
        result = run(progress=progress, **settings)
    if out:
        result.write(out)
    page = Result([result.make_page(out)], result)
    if result.lacking:
        page.deliver(json_path)
        raise InputError(f"not everything was computed: {'; '.join(result.lacking)}")
    return page


def _show_so_far(result: Any, out: str | None) -> None:
    """Print a study that is not done to standard error, and write it where the whole one goes."""
    from rich.console import Console

    from groundfault.render.terminal import show

    unit = "seed" if "seeds" in result.settings else "replicate"
    click.echo(f"So far, after {plural(result.settings[f'{unit}s'], unit)}:", err=True)
    show(result.make_page(out), Console(stderr=True))
    if out:
        result.write(out)
