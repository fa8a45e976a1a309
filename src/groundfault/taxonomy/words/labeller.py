"""Labelling by a language model: clusters are named from their exemplars, and a second labeller
checks the names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from groundfault.base.streams import stream
from groundfault.errors import InputError, PlanError
from groundfault.models import Question, Target, get
from groundfault.taxonomy.fitting.taxonomy import Cluster, Taxonomy
from groundfault.taxonomy.words import replies
from groundfault.taxonomy.words.labelling import (
    LEVELS,
    MODES,
    Label,
    Labelling,
    Membership,
    digest_of,
)
from groundfault.taxonomy.words.replies import ModelRequest, Reply, Unreadable, fenced, fill
from groundfault.taxonomy.words.texts import text_column, words_column

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
    shown: int = 5,
    seed: int = 0,
    progress: Callable[[str], object] = bool,
    **options: Any,
) -> Labelling:
    """Have a model label each cluster from the tasks nearest to its centre, and a second one check
    the labels.

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
    shown : int
        Members, and as many others, in each check of membership: drawn at random, exemplars left
        out where there are enough without them, the others from other clusters.
    seed : int
        Of that draw; handed to the model as well.
    progress : callable, optional
    **options
        For `groundfault.models.ask`: record, concurrency, temperature, ...

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
    if shown < 1:
        raise PlanError(f"a check of membership shows at least 1 member, not {shown}")
    column = text_column(taxonomy.matrix, text)
    texts = dict(zip(taxonomy.matrix.examples, words_column(taxonomy.matrix, column), strict=True))
    options |= {"progress": progress}
    first, other = _opened(model), None if second is None else _opened(second)
    asked = [_question(cluster, texts, seed, 0) for cluster in taxonomy.clusters]
    labels = _labels(taxonomy.clusters, first, asked, options)
    prompts = {name: replies.prompt_hash(name) for name in ("label", "membership", "again")}
    found = Labelling(digest_of(taxonomy), first.name, labels, seed=seed, prompts=prompts)
    if other is None:
        return found
    same = int(other.name == first.name)
    asked = [_question(cluster, texts, seed + 1, same) for cluster in taxonomy.clusters]
    again = _labels(taxonomy.clusters, other, asked, options)
    checked = _membership(taxonomy, labels, texts, other, shown, seed, options)
    return Labelling(found.taxonomy, first.name, labels, other.name, again, checked, seed, prompts)


def _opened(target: str | Target) -> Target:
    return get(target) if isinstance(target, str) else target


def _question(
    cluster: Cluster, texts: dict[str, str | None], seed: int, repeat: int
) -> ModelRequest[_LabelReply] | None:
    said = [text for name in cluster.exemplars if (text := texts.get(name))]
    if not said:
        return None
    return ModelRequest(
        Question(fill("label", count=len(said), **fenced(said)), seed=seed, repeat=repeat),
        _read_label,
    )


def _labels(
    clusters: Sequence[Cluster],
    target: Target,
    asked: Sequence[ModelRequest[_LabelReply] | None],
    options: dict[str, Any],
) -> tuple[Label, ...]:
    replied = iter(replies.ask_for(target, [each for each in asked if each is not None], **options))
    return tuple(
        _named(c, None if q is None else next(replied))
        for c, q in zip(clusters, asked, strict=True)
    )


def _named(cluster: Cluster, reply: Reply[_LabelReply] | None) -> Label:
    if reply is None:
        return Label(cluster.number, cluster.published, "error", "its exemplars have no text")
    said = reply.value
    return Label(
        cluster.number,
        cluster.published,
        reply.status,
        reply.reason,
        *((said.label, said.failure_mode, said.bloom) if said else ("", "", "")),
        exemplars=cluster.exemplars,
        attempts=reply.attempts,
        question=reply.question,
    )


def _read_label(text: str) -> _LabelReply:
    said = replies.decode(text, _LabelReply)
    mode, level = (
        word.strip().casefold().replace(" ", "_").replace("-", "_")
        for word in (said.failure_mode, said.bloom)
    )
    if mode not in MODES:
        raise Unreadable(f"failure_mode must be one of {', '.join(MODES)}")
    if level not in LEVELS:
        raise Unreadable(f"bloom must be one of {', '.join(LEVELS)}")
    return _LabelReply(replies.line(said.label, _LONGEST, "label"), mode, level)


def _membership(
    taxonomy: Taxonomy,
    labels: Sequence[Label],
    texts: dict[str, str | None],
    target: Target,
    shown: int,
    seed: int,
    options: dict[str, Any],
) -> tuple[Membership, ...]:
    drawn = [
        (each, *_drawn(taxonomy, each, texts, shown, seed))
        for each in labels
        if each.status == "read"
    ]
    chosen = [
        each for each in drawn if each[1]
    ]  # a cluster that holds everything is told from nothing
    asked = []
    for given, names, _ in chosen:
        parts = fenced([texts[name] or "" for name in names], name=given.label)
        question = Question(fill("membership", count=len(names), **parts), seed=seed + 1)
        asked.append(ModelRequest(question, partial(_read_members, len(names))))
    found = []
    for (given, names, members), reply in zip(
        chosen, replies.ask_for(target, asked, **options), strict=True
    ):
        if reply.value is None:
            found.append(
                Membership(given.cluster, reply.status, reply.reason, question=reply.question)
            )
            continue
        fits = {names[i - 1] for i in reply.value}
        inside, outside = members & set(names), set(names) - members
        counts = (len(inside), len(outside), len(fits & inside), len(outside - fits))
        found.append(Membership(given.cluster, "read", "", *counts, reply.question))
    return tuple(found)


def _drawn(
    taxonomy: Taxonomy, given: Label, texts: dict[str, str | None], shown: int, seed: int
) -> tuple[list[str], set[str]]:
    """Tasks to be shown, in the order of showing, and all members."""
    rng = stream(seed, "taxonomy membership", given.cluster)
    of = taxonomy.labels
    there = [name for name in of if texts[name]]
    members = [name for name in there if of[name] == given.cluster]
    unseen = [name for name in members if name not in given.exemplars]
    others = [name for name in there if of[name] not in (given.cluster, 0)]
    others = (
        others if len(others) >= shown else [name for name in there if of[name] != given.cluster]
    )
    pool = unseen if len(unseen) >= shown else members
    most = min(shown, len(pool), len(others))  # as many of each, so that guessing gives half
    drawn = [
        names[i] for names in (pool, others) for i in rng.choice(len(names), most, replace=False)
    ]
    return [drawn[i] for i in rng.permutation(len(drawn))], set(members)


def _read_members(most: int, text: str) -> tuple[int, ...]:
    said = replies.decode(text, _MembersReply).members
    if any(not 1 <= number <= most for number in said):
        raise Unreadable(f"members must be numbers from 1 to {most}")
    return tuple(sorted(set(said)))
