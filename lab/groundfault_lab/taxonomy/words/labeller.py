"""Labelling by a language model: one names clusters from exemplars, a second checks the names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Unpack

import msgspec

from groundfault.base.long_work import stream
from groundfault.errors import InputError, PlanError
from groundfault.models import Question, Target, get, replies
from groundfault.models.asking import AskOptions
from groundfault.models.replies import OWN_PROMPTS, ModelRequest, Prompts, Reply, Unreadable, fence
from groundfault_lab.taxonomy.fitting.taxonomy import Cluster, Taxonomy
from groundfault_lab.taxonomy.words.labelling import (
    LEVELS,
    MODES,
    Label,
    Labelling,
    Membership,
    hash_taxonomy,
)

_PROMPTS = Prompts("groundfault_lab.taxonomy.words")
_LONGEST = 100  # characters of a label


class _LabelReply(msgspec.Struct, forbid_unknown_fields=True):
    label: str
    failure_mode: str
    bloom: str


class _MembersReply(msgspec.Struct, forbid_unknown_fields=True):
    members: list[int]


def label(
    taxonomy: Taxonomy,
    model: str | Target,
    *,
    second: str | Target | None = None,
    text: str | None = None,
    members: int = 5,
    seed: int = 0,
    **options: Unpack[AskOptions],
) -> Labelling:
    """Have a model label each cluster from the tasks nearest to its centre.

    A second model, if there is one, checks the labels.

    Parameters
    ----------
    taxonomy : Taxonomy
    model : str or Target
        Such as ``openai/gpt-4o-mini``; see `groundfault.models`.
    second : str or Target, optional
        Labels the same clusters from the same tasks without seeing the first labels; then it is
        told each first label and says which of some tasks it fits. The same model is asked at
        another seed.
    text : str, optional
        Column with what an example says; left out, the only column of prose.
    members : int
        Members of the cluster, and as many other tasks, in each check of membership. They are
        drawn at random, without exemplars if the cluster is large enough; the others come from
        other clusters.
    seed : int
        Of that draw; handed to the model as well.
    **options
        For `groundfault.models.ask`: progress, record, concurrency, temperature, ...

    Returns
    -------
    Labelling
        A reply that cannot be read is asked for once more, and then is a label with the status
        ``unparsed``.

    Raises
    ------
    InputError
        If there is no cluster, or no column of texts; and what `groundfault.models.ask` raises.

    Notes
    -----
    FailureScope (arXiv:2606.09878), Appendices D, F and K, whose check of membership shows members
    alone. The labeller sees tasks and no answers: its failure mode is a guess from what is asked.
    """
    if not taxonomy.clusters:
        raise InputError("this taxonomy has no clusters to label")
    if members < 1:
        raise PlanError(f"a check of membership shows at least 1 member, not {members}")
    matrix = taxonomy.matrix
    says = matrix.read_words(matrix.find_text_column(text))
    texts = dict(zip(matrix.examples, says, strict=True))
    first, other = get(model), None if second is None else get(second)
    labels = _ask_labels(taxonomy.clusters, texts, first, seed, 0, options)
    prompts = {name: _PROMPTS.hash(name) for name in ("label", "membership")}
    prompts["again"] = OWN_PROMPTS.hash("again")
    labelling = Labelling(hash_taxonomy(taxonomy), first.name, labels, seed=seed, prompts=prompts)
    if other is None:
        return labelling
    # the same model needs another question, or its record would repeat the first reply
    repeat = int(other.name == first.name)
    again = _ask_labels(taxonomy.clusters, texts, other, seed + 1, repeat, options)
    membership = _check_membership(taxonomy, labels, texts, other, members, seed, options)
    return replace(labelling, second=other.name, second_labels=again, membership=membership)


def _ask_labels(
    clusters: Sequence[Cluster],
    texts: dict[str, str | None],
    target: Target,
    seed: int,
    repeat: int,
    options: AskOptions,
) -> tuple[Label, ...]:
    """Ask for the label of each cluster whose exemplars have texts."""
    requests: dict[int, ModelRequest[_LabelReply]] = {}
    for cluster in clusters:
        examples = [text for name in cluster.exemplars if (text := texts.get(name))]
        if examples:
            prompt = _PROMPTS.fill("label", count=len(examples), **fence(examples))
            requests[cluster.number] = ModelRequest(
                Question(prompt, seed=seed, repeat=repeat), _read_label
            )
    replied = replies.ask_for(target, list(requests.values()), **options)
    by_cluster = dict(zip(requests, replied, strict=True))
    return tuple(_make_label(cluster, by_cluster.get(cluster.number)) for cluster in clusters)


def _make_label(cluster: Cluster, reply: Reply[_LabelReply] | None) -> Label:
    if reply is None:
        return Label(cluster.number, cluster.published, "error", "its exemplars have no text")
    value = reply.value
    return Label(
        cluster.number,
        cluster.published,
        reply.status,
        reply.reason,
        *((value.label, value.failure_mode, value.bloom) if value else ("", "", "")),
        exemplars=cluster.exemplars,
        attempts=reply.attempts,
        question=reply.question,
    )


def _read_label(text: str) -> _LabelReply:
    reply = replies.decode(text, _LabelReply)
    mode, level = (
        word.strip().casefold().replace(" ", "_").replace("-", "_")
        for word in (reply.failure_mode, reply.bloom)
    )
    if mode not in MODES:
        raise Unreadable(f"failure_mode must be one of {', '.join(MODES)}")
    if level not in LEVELS:
        raise Unreadable(f"bloom must be one of {', '.join(LEVELS)}")
    return _LabelReply(replies.check_line(reply.label, _LONGEST, "label"), mode, level)


def _check_membership(
    taxonomy: Taxonomy,
    labels: Sequence[Label],
    texts: dict[str, str | None],
    target: Target,
    max_members: int,
    seed: int,
    options: AskOptions,
) -> tuple[Membership, ...]:
    draws = [
        (each, *_draw_tasks(taxonomy, each, texts, max_members, seed))
        for each in labels
        if each.status == "read"
    ]
    checks = [each for each in draws if each[1]]  # without other tasks there is nothing to decide
    requests = []
    for one_label, names, _ in checks:
        parts = fence([texts[name] or "" for name in names], name=one_label.label)
        question = Question(_PROMPTS.fill("membership", count=len(names), **parts), seed=seed + 1)
        requests.append(ModelRequest(question, partial(_read_members, len(names))))
    results = []
    replied = replies.ask_for(target, requests, **options)
    for (one_label, names, members), reply in zip(checks, replied, strict=True):
        counts = (0, 0, 0, 0)
        if reply.value is not None:
            fits = {names[i - 1] for i in reply.value}
            inside, outside = members & set(names), set(names) - members
            counts = (len(inside), len(outside), len(fits & inside), len(outside - fits))
        how = (one_label.cluster, reply.status, reply.reason)
        results.append(Membership(*how, *counts, reply.question))
    return tuple(results)


def _draw_tasks(
    taxonomy: Taxonomy, one_label: Label, texts: dict[str, str | None], max_members: int, seed: int
) -> tuple[list[str], set[str]]:
    """Draw the tasks to be shown, in the order of showing; also return all members."""
    rng = stream(seed, "taxonomy membership", one_label.cluster)
    examples, inside = taxonomy.matrix.examples, taxonomy.inside
    there = [i for i, name in enumerate(examples) if texts[name]]
    here = inside[:, one_label.cluster - 1]
    members = [examples[i] for i in there if here[i]]
    # exemplars gave the label: to recognise them proves nothing
    unseen = [name for name in members if name not in one_label.exemplars]
    # of other clusters first, which is harder than noise
    others = [examples[i] for i in there if not here[i] and inside[i].any()]
    if len(others) < max_members:
        others = [examples[i] for i in there if not here[i]]
    pool = unseen if len(unseen) >= max_members else members
    most = min(max_members, len(pool), len(others))  # as many of each, so that guessing gives half
    sample = [
        names[i] for names in (pool, others) for i in rng.choice(len(names), most, replace=False)
    ]
    # shuffled, for members first would be recognisable by position
    return [sample[i] for i in rng.permutation(len(sample))], set(members)


def _read_members(most: int, text: str) -> tuple[int, ...]:
    numbers = replies.decode(text, _MembersReply).members
    if any(not 1 <= number <= most for number in numbers):
        raise Unreadable(f"members must be numbers from 1 to {most}")
    return tuple(sorted(set(numbers)))
