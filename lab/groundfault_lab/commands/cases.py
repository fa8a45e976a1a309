"""``cases``: a model writes cases like those of the group that a sequential audit doubts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

import polars as pl

from groundfault import models
from groundfault.base.files import write_text
from groundfault.base.long_work import Progress, stream
from groundfault.cli.command import command
from groundfault.cli.output import Result
from groundfault.cli.settings import Count, OutFile, own_options
from groundfault.errors import InputError, require_name
from groundfault.models import Target
from groundfault.models.asking import AskOptions
from groundfault.readers.table import read_table
from groundfault.sequential import Certificate
from groundfault.sequential.pool import from_hex
from groundfault_lab.commands.models import get_model, writer_options

_ASK = ("user", "Write one question of the same kind, on one line.")
_EXAMPLES = 5  # cases that each request shows: enough for a kind, few enough for a small model
_TOKENS = 120  # of one case


@command(first="model prompt count out")
@writer_options("cases")
@own_options
def cases(
    certificate: str,
    pool: str,
    *,
    model: str,
    settings: tuple[str, ...] = (),
    id: str = "id",
    prompt: str = "prompt",
    group: str | None = None,
    count: Count = 20,
    seed: int = 0,
    out: OutFile,
    progress: Progress,
) -> Result:
    """Let a model write cases for the group that an audit doubts.

    Each request shows the model five cases of the group, drawn at random, and takes one case from
    its reply. The written cases are a population of their own: label them in an audit of their own
    (--generated). Its verdict is about the cases that this model writes, and neither counts for
    CERTIFICATE nor says anything of POOL.

    \b
    groundfault lab cases certificate.json pool.parquet --model openai/gpt-4o --out cases.csv
    groundfault label run cases.csv --id id --groups group --generated --threshold 0.85 --label ask

    Input
    -----
    certificate : CERTIFICATE
        What label run --certificate, or label report, wrote.
    pool : POOL
        The table that was audited.
    id : COL
        Column of case ids.
    prompt : COL
        Column of the text that a case consists of.
    group : GROUP
        Group to write for; by default the one that the policy claimed last.

    Output
    ------
    count : N
        Number of cases; each costs a request.
    seed
        Draws the cases that are shown.
    out : FILE
        Write the cases to this file.
    """
    result = Certificate.load(certificate)
    name = group or next((r.group for r in reversed(result.rounds) if r.claim and r.group), None)
    if name is None:
        raise InputError(f"the policy of {certificate} claimed no group: name one (--group)")
    table, _ = read_table(pool)
    for column in (id, prompt):
        require_name("column", column, table.columns, InputError, pool)
    texts = select_group(result, name, table[id].cast(pl.String), table[prompt].cast(pl.String))
    target = get_model(model=model, settings=settings)
    record = Path(f"{out}.calls.db")
    written = write_cases(texts, target, count=count, seed=seed, record=record, progress=progress)
    if not written:
        raise InputError(f"{model} wrote no case for {name!r}: try another model")
    rows = {"id": [f"w{n:04d}" for n in range(len(written))], prompt: written}
    frame = pl.DataFrame(rows).with_columns(group=pl.lit(name), writer=pl.lit(target.name))
    write_text(Path(out), frame.write_csv())
    distinct = len(set(written))
    return Result(
        [
            f"wrote {len(written)} cases ({distinct} distinct) for {name} to {out}",
            "they are a population of their own: label them with label run --generated",
        ]
    )


def select_group(
    certificate: Certificate, group: str, ids: pl.Series, texts: pl.Series
) -> list[str]:
    """Return the texts of the cases of a group, in the order of the audited pool.

    Raises
    ------
    InputError
        If the certificate has no such group, or the table lacks its cases.
    """
    outline = certificate.pool
    require_name("group", group, outline.groups, InputError, "the certificate")
    text = dict(zip(ids, texts, strict=True))
    inside = from_hex(outline.groups[group], len(outline.ids))
    names = [name for name, member in zip(outline.ids, inside, strict=True) if member]
    if lacking := [name for name in names if text.get(name) is None]:
        raise InputError(f"the table has no text of case {lacking[0]!r}: name the audited table")
    return [text[name] for name in names]


def write_cases(
    texts: Sequence[str],
    target: str | Target,
    *,
    count: int,
    seed: int = 0,
    **options: Unpack[AskOptions],
) -> list[str]:
    """Let a model write cases like some texts, a request each.

    Requests are alike but for the texts that are drawn to be shown, so the replies are independent
    draws of one population; equal ones stay. A reply without text, or a refusal, makes no case.

    Parameters
    ----------
    texts : sequence of str
    target : str or Target
    count : int
        Requests.
    seed : int
        Of the draws of texts.
    **options
        For `groundfault.models.ask`; the temperature is 1 where left out.

    Raises
    ------
    InputError
        If a request got no reply.
    """
    questions = []
    for number in range(count):
        order = stream(seed, "cases", number).permutation(len(texts))[:_EXAMPLES]
        # earlier turns of its own, which small models follow where they copy instructions
        turns = [(role, text) for n in order for role, text in (_ASK, ("assistant", texts[n]))]
        messages = [{"role": role, "content": text} for role, text in (*turns, _ASK)]
        questions.append(models.Question(messages, max_tokens=_TOKENS, repeat=number))
    options.setdefault("temperature", 1.0)
    replies = models.ask(target, questions, **options)
    if error := next((reply.error for reply in replies if reply.error), ""):
        raise InputError(f"the model gave no reply: {error}; run again to go on")
    lines = ((reply.text or "").strip().splitlines() for reply in replies if not reply.refused)
    return [text for reply in lines if reply and (text := reply[0].strip().strip('"'))]
