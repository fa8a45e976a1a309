"""Steps: messages, calls and results of runs as one table, for logs of any tool."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import polars as pl

from groundfault import readers
from groundfault.core.column_meaning import (
    TRANSCRIPT,
    list_conversations,
    open_conversation,
    read_attributes,
)
from groundfault.errors import InputError, PlanError
from groundfault.readers.importing import digest_log
from groundfault.readers.safely import pause_collection

if TYPE_CHECKING:
    from groundfault.core.roles import Roles
    from groundfault.readers.account import Account, LogRead

SCHEMA: dict[str, Any] = {
    "run": pl.UInt32,
    "step": pl.UInt32,
    "turn": pl.UInt32,
    "actor": pl.String,
    "kind": pl.String,
    "name": pl.String,
    "arguments_digest": pl.UInt64,
    "status": pl.String,
    "error_kind": pl.String,
    "text_ref": pl.UInt32,
    "text_digest": pl.UInt64,
    "chars": pl.UInt32,
    "signs": pl.List(pl.String),
    "tokens": pl.Int64,
    "seconds": pl.Float64,
    "parent": pl.String,
}
"""Columns of the table of steps; `tabulate_steps` says what they hold."""

_MAX_STEPS = 10_000
"""Steps of one run that are read: a loop that never ends has no more to say."""
_BATCH = 500
"""Runs whose texts, or cells of a table, are Python objects at once: some 10 MB."""

# what tools and people write when something went wrong, at the start of a result or anywhere in it
_ERROR = (
    r"(?i)^\W*(observation:?\s*)?(error|exception|traceback|fatal|failed|failure)\b"
    r'|^\s*\{"error"|^exitcode: [1-9]|^Observation:\s*I don.t understand'
    r"|(?-i:Traceback \(most recent call last\)|\n\w*(Error|Exception)\b)"
)
_TIMEOUT = r"(?i)timed? ?out"
_JUDGED = r"(?i)^\W*(observation:?\s*)?your (answer|solution) is (wrong|incorrect|right|correct)"
"""Feedback of a grader in a conversation: who gets it has answered, and it tells the outcome."""
_LAST_ERROR = r"(?m)^(\w*(?:Error|Exception)\b.*)$"
_VALUES = r"\d[\d.,:_-]*|'[^'\n]*'|\"[^\"\n]*\"|0x[0-9a-f]+|/[\w./-]+|\b[A-Z]{2,}\d+\b"
"""Parts of a message that differ between two errors of one kind."""
_QUOTED = r"""^(\w+)\(['"](.*)['"],?\)$"""
"""An exception as Python prints it, with its message in quotes."""
_MAX_TEMPLATE = 80
"""Characters of a template: those behind them are an argument or a trace."""

SIGNS = {
    "apologises": r"\b(sorry|apologi[sz]e|my mistake|je suis désolé|entschuldig|disculpa)",
    "hedges": r"\b(i think|i believe|probably|perhaps|might be|not (entirely )?sure|unclear)\b",
    "refuses": r"\b(i('m| am)? (cannot|can't|unable to|not able to)|i won't|against policy)\b",
    "claims success": r"\b(successfully|(is|are|now|been|it's) (done|fixed|complete[d]?)"
    r"|all tests pass|works? (correctly|as expected)|task (is )?complete)",
    "says wait": r"\b(wait|actually|on second thought|let me (re-?check|try again|fix))\b",
    "corrects": r"^\W*(no\b|that('s| is) (not|wrong)|wrong|incorrect|i (said|meant|asked))",
}
"""Words, most of them English, by what they are a sign of; looked for in lower case."""

_TAG = re.compile(
    r"<(execute|solution|bash|python|tool_call|action|search)>(.*?)(?:</\1>|\Z)", re.DOTALL
)
_REACT = re.compile(r"^Action:\s*(\w+)\s*(?:\n\s*Action Input:\s*(.*)|[\[(](.*)[\])])?", re.M)
_ROLES = {
    "human": "user", "ai": "assistant", "model": "assistant", "developer": "system",
    "function": "tool", "ipython": "tool", "observation": "environment", "tool_response": "tool",
}  # fmt: skip
_ACTORS = frozenset(("system", "user", "assistant", "tool", "environment", "judge"))
# names of those who run code, and of agents, in lists of many agents
_MACHINES = re.compile(r"terminal|executor|computer|environment|sandbox", re.IGNORECASE)
_AGENTS = re.compile(
    r"expert|agent|assistant|planner|coder|critic|manager|orchestrat", re.IGNORECASE
)
_OBSERVED = re.compile(r"\s*(observation|exitcode|execution result)\b:?", re.IGNORECASE)


class Step(NamedTuple):
    """One step as a log has it; the table has digests of its texts."""

    actor: str
    kind: str
    text: str | None = None
    name: str | None = None
    arguments: str | None = None
    status: str | None = None
    tokens: int | None = None
    seconds: float | None = None
    parent: str | None = None


def list_steps(conversation: object) -> Iterator[tuple[int, int, Step]]:
    """Yield the steps of a run, each with its turn and the place of its message.

    Parameters
    ----------
    conversation : str, list or dict
        Messages of OpenAI, Anthropic, Inspect, tau-bench or AutoGen, turns of SWE-agent, spans of
        OpenTelemetry, Langfuse or Phoenix.

    Yields
    ------
    turn, message, step
        A turn begins with each message of the agent; steps before the first are turn 0.
    """
    names: dict[str, str] = {}
    turn, acts = 0, False
    for place, item in enumerate(open_conversation(conversation)):
        is_new = True
        for step in _read_item(item, names, acts):
            if step.actor == "assistant":
                turn += is_new
                is_new = False
                acts = step.kind == "call"
            yield turn, place, step


def _read_item(item: dict[str, object], names: dict[str, str], acts: bool) -> Iterable[Step]:
    if "role" in item or "source" in item:
        return _read_message(item, names, acts)
    return _read_action(item) if "action" in item else _read_span(item)


def _read_message(message: dict[str, Any], names: dict[str, str], acts: bool) -> Iterator[Step]:
    role = str(message.get("role") or message.get("source"))
    who = message.get("name") or message.get("agent") or (message.get("source"))
    actor = _ROLES.get(role, role)
    if actor not in _ACTORS:
        # in lists of many agents the role is the agent's own name
        actor, who = "assistant", who or role
    texts, calls, results = _split_content(message)
    content = "\n".join(texts)
    who = who if isinstance(who, str) else None
    if who and actor in ("assistant", "user"):
        # from where one agent stands, the others are users
        is_agent, is_machine = _AGENTS.search(who), _MACHINES.search(who)
        actor = "environment" if is_machine else "assistant" if is_agent else actor
    if actor == "user" and (results or (acts and _OBSERVED.match(content))):
        actor = "environment" if not results else "user"
    if actor in ("tool", "environment") or message.get("kind") == "result":
        name = message.get("function") or names.get(str(message.get("tool_call_id"))) or who
        is_told = message.get("kind") in ("limit", "error", "feedback")
        error = message.get("error")
        if not content and isinstance(error, dict):
            content = str(error.get("message") or "")
        kind = str(message["kind"]) if is_told else "result"
        yield Step(actor, kind, content, name, None, _read_status(message), parent=_parent(message))
        return
    for result in results:
        name = names.get(str(result.get("tool_use_id")))
        words = "\n".join(_split_content(result)[0])
        status = "error" if result.get("is_error") else None
        yield Step("tool", "result", words, name, None, status)
    if content or not (calls or results):
        kind = "feedback" if actor == "judge" else "message"
        yield Step(actor, kind, content, who, tokens=_count_tokens(message))
    for call in calls:
        name, arguments, number = _read_call(call)
        names[number] = name
        yield Step("assistant", "call", None, name, arguments, parent=number or None)
    if actor == "assistant" and not calls and ("<" in content or "Action" in content):
        yield from _read_actions(content)


def _split_content(
    message: Mapping[str, Any],
) -> tuple[list[str], list[dict[str, object]], list[dict[str, object]]]:
    """Return the texts, calls and results of a message, in any form of blocks."""
    content = message.get("content")
    if content is None:
        content = message.get("parts") or message.get("text")
    calls = [c for c in message.get("tool_calls") or () if isinstance(c, dict)]
    if isinstance(message.get("function_call"), dict):
        calls.append(message["function_call"])
    if isinstance(content, str):
        return [content] if content else [], calls, []
    texts, results = [], []
    for block in content if isinstance(content, list) else ():
        kind = block.get("type") if isinstance(block, dict) else None
        if kind in ("tool_use", "tool_call", "server_tool_use"):
            calls.append(block)
        elif kind in ("tool_result", "tool_call_response"):
            results.append(block)
        elif isinstance(block, str):
            texts.append(block)
        elif kind not in ("thinking", "reasoning") and isinstance(block, dict):
            texts.extend(x for k in ("text", "content") if isinstance(x := block.get(k), str))
    return texts, calls, results


def _read_call(call: Mapping[str, object]) -> tuple[str, str | None, str]:
    inner = call.get("function")
    of = inner if isinstance(inner, dict) else call
    name = inner if isinstance(inner, str) else of.get("name")
    arguments = of.get("arguments", of.get("input", of.get("args")))
    return str(name or ""), _spell(arguments), str(call.get("id") or call.get("tool_call_id") or "")


def _spell(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value, order="sorted", enc_hook=str).decode()


def _read_actions(content: str) -> Iterator[Step]:
    """Yield calls that are written into a text: in tags, or as ReAct writes them."""
    for tag in _TAG.finditer(content):
        yield Step("assistant", "call", None, tag[1], tag[2].strip())
    for action in _REACT.finditer(content):
        yield Step("assistant", "call", None, action[1], action[2] or action[3])


def _read_status(message: Mapping[str, object]) -> str | None:
    error = message.get("error")
    if not error and message.get("kind") not in ("error", "limit"):
        return "error" if message.get("is_error") else None
    kind = error.get("type") if isinstance(error, dict) else None
    return {"timeout": "timeout", "permission": "refused", "approval": "refused"}.get(
        str(kind), "error"
    )


def _parent(message: Mapping[str, object]) -> str | None:
    parent = message.get("tool_call_id")
    return parent if isinstance(parent, str) else None


def _count_tokens(message: Mapping[str, object]) -> int | None:
    usage = message.get("usage")
    tokens = usage.get("completion_tokens") if isinstance(usage, dict) else None
    return tokens if isinstance(tokens, int) else None


def _read_action(turn: Mapping[str, object]) -> Iterator[Step]:
    """Yield the steps of a turn of SWE-agent: thought, action, observation."""
    thought, action = turn.get("thought") or turn.get("response"), str(turn.get("action") or "")
    seconds = turn.get("execution_time")
    yield Step("assistant", "message", _spell(thought))
    if action.strip():
        yield Step("assistant", "call", None, action.split()[0], action)
    if (observation := _spell(turn.get("observation"))) is not None:
        time = float(seconds) if isinstance(seconds, int | float) else None
        yield Step("environment", "result", observation, seconds=time)


def _read_span(span: Mapping[str, object]) -> Iterator[Step]:
    """Yield the steps of a span: of OpenTelemetry's GenAI conventions, Langfuse or Phoenix."""
    marks = read_attributes(span.get("attributes"))
    told = (marks.get("gen_ai.operation.name"), marks.get("openinference.span.kind"))
    kind = next((str(k).lower() for k in (*told, span.get("span_kind"), span.get("type")) if k), "")
    name = marks.get("gen_ai.tool.name") or marks.get("tool.name") or span.get("name")
    code = span.get("status_code") or read_attributes(span.get("status")).get("code")
    failed = span.get("level") == "ERROR" or str(code).upper() in (
        "ERROR",
        "2",
        "STATUS_CODE_ERROR",
    )
    keys = ("output", "output.value", "gen_ai.tool.call.result", "gen_ai.output.messages")
    output = next((x for k in keys if (x := span.get(k, marks.get(k))) is not None), None)
    sent = ("input", "input.value", "gen_ai.tool.call.arguments")
    given = next((x for k in sent if (x := span.get(k, marks.get(k))) is not None), None)
    message = span.get("statusMessage") or span.get("status_message")
    number = next((str(span[k]) for k in ("id", "span_id", "spanId") if span.get(k)), None)
    text = _spell(message if failed and message else output)
    status = "error" if failed else None
    if kind in ("execute_tool", "tool"):
        yield Step("assistant", "call", None, str(name), _spell(given), parent=number)
        yield Step("tool", "result", text or "", str(name), None, status, parent=number)
    elif kind in ("chat", "llm", "generation", "text_completion", "generate_content"):
        tokens = marks.get("gen_ai.usage.output_tokens")
        count = tokens if isinstance(tokens, int) else None
        yield Step("assistant", "message", text, None, None, status, count, parent=number)
    elif failed:
        yield Step("environment", "error", text or "", str(name), None, status, parent=number)


def tabulate_steps(runs: Iterable[tuple[int, Any]], *, texts: bool = False) -> pl.DataFrame:
    """Return the steps of runs as one table; texts of 500 runs at a time are in memory.

    Parameters
    ----------
    runs : iterable of (int, conversation)
        Number of a run, and what `list_steps` takes.
    texts : bool
        Whether to add ``text`` and ``arguments``, for the few runs that somebody reads.

    Returns
    -------
    polars.DataFrame
        A row a step: ``run``, ``step`` and ``turn`` in it; ``actor`` (system, user, assistant,
        tool, environment, judge); ``kind`` (message, call, result, feedback, error, limit);
        ``name`` of the tool or agent; ``status`` (ok, error, timeout, refused) and, of errors, the
        message as a template; ``text_ref``, the place of the message in the conversation; digests,
        equal where texts or arguments are; ``signs``, the lists of words that the text has a word
        of; ``tokens``, ``seconds``, ``parent``.
    """
    rest, tables = iter(runs), []
    while batch := list(islice(rest, _BATCH)):
        with pause_collection():
            tables.append(_tabulate(batch, texts))
    extra = {"text": pl.String, "arguments": pl.String} if texts else {}
    return pl.concat([pl.DataFrame(schema=SCHEMA | extra), *tables])


def _tabulate(batch: Iterable[tuple[int, Any]], texts: bool) -> pl.DataFrame:
    rows = [
        (run, number, turn, place, *step)
        for run, conversation in batch
        for number, (turn, place, step) in zip(
            range(_MAX_STEPS), list_steps(conversation), strict=False
        )
    ]
    names = ("run", "step", "turn", "text_ref", *Step._fields)
    kinds = {n: SCHEMA.get(n, pl.String) for n in names}
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    raw = pl.DataFrame(
        [pl.Series(n, c, dtype=kinds[n], strict=False) for n, c in zip(names, columns, strict=True)]
    )
    return _describe(raw).select(*SCHEMA, *(("text", "arguments") if texts else ()))


def _describe(raw: pl.DataFrame) -> pl.DataFrame:
    """Add columns read from texts: status, kind of error, signs, digests."""
    kind, text = pl.col("kind"), pl.col("text")
    is_result = kind.is_in(["result", "error"]) & pl.col("status").is_null()
    # a text that is null is not searched
    result, spoken = pl.when(is_result).then(text), pl.col("actor").is_in(["assistant", "user"])
    said = pl.when(spoken).then(text.str.to_lowercase())
    known = raw.with_columns(
        result.str.contains(_JUDGED).fill_null(False).alias("judged"),
        result.str.contains(_ERROR).fill_null(False).alias("fails"),
        pl.concat_list(
            pl.when(said.str.contains(words)).then(pl.lit(name)) for name, words in SIGNS.items()
        )
        .list.drop_nulls()
        .alias("signs"),
        text.hash().alias("text_digest"),
        text.str.len_chars().fill_null(0).alias("chars"),
        pl.col("arguments").hash().alias("arguments_digest"),
    )
    judged, fails = pl.col("judged"), pl.col("fails") & ~pl.col("judged")
    late = pl.when(fails).then(text.str.slice(0, 200)).str.contains(_TIMEOUT)
    status = pl.when(late).then(pl.lit("timeout")).when(fails).then(pl.lit("error"))
    done = known.with_columns(
        status.otherwise(pl.col("status").fill_null("ok")).alias("status"),
        pl.when(judged).then(pl.lit("feedback")).otherwise(kind).alias("kind"),
        pl.when(judged).then(pl.lit("judge")).otherwise(pl.col("actor")).alias("actor"),
    )
    wrong = pl.when((pl.col("status") != "ok") & (kind != "message")).then(text)
    first = wrong.str.strip_chars().str.replace(r"(?i)^observation:\s*", "").str.extract(r"^(.*)")
    line = pl.coalesce(wrong.str.extract_all(_LAST_ERROR).list.last(), first)
    return done.with_columns(make_template(line).alias("error_kind"))


def make_template(message: pl.Expr) -> pl.Expr:
    """Return the first line of an error without numbers, quotes and paths: equal for one kind."""
    line = message.str.extract(r"^(.*)").str.replace(_QUOTED, "$1: $2")
    return line.str.replace_all(_VALUES, "*").str.slice(0, _MAX_TEMPLATE)


def read_steps(frame: pl.DataFrame, roles: Roles, account: Account | None) -> pl.DataFrame:
    """Return the steps of all runs of evidence, from its logs or from a column of its table.

    Parameters
    ----------
    frame, roles, account
        Of the evidence.

    Returns
    -------
    polars.DataFrame
        A row a step: ``example_id``, ``model``, ``repeat``, and what `tabulate_steps` says, ``run``
        being the row of the evidence; without rows where nothing holds conversations. A log that is
        not where it was any more is left out, with a warning.
    """
    named = {"example_id": roles.id, "model": roles.model, "repeat": roles.repeat}
    keys = frame.select(
        (pl.lit(None, pl.String) if column is None else pl.col(column).cast(pl.String)).alias(name)
        for name, column in named.items()
    )
    steps = tabulate_steps(_list_runs(frame, roles, account, range(frame.height))).sort(
        "run", "step"
    )
    return pl.concat([keys[steps["run"]], steps], how="horizontal")


def read_transcripts(
    frame: pl.DataFrame, roles: Roles, account: Account | None, rows: Sequence[int]
) -> pl.DataFrame:
    """Return the steps of some runs, by their rows, with their texts and arguments."""
    return tabulate_steps(_list_runs(frame, roles, account, rows), texts=True)


def _list_runs(
    frame: pl.DataFrame, roles: Roles, account: Account | None, rows: Sequence[int]
) -> Iterator[tuple[int, object]]:
    """Yield numbers of rows and their conversations."""
    if TRANSCRIPT in frame.columns and account is not None:
        yield from _open_logs(frame[list(rows)], account.logs, rows)
        return
    columns = [c for c in list_conversations(frame) if c not in roles.columns]
    for start in range(0, len(rows) if columns else 0, _BATCH):
        part = rows[start : start + _BATCH]
        yield from zip(part, frame[columns[0]][list(part)].to_list(), strict=True)


def _open_logs(
    frame: pl.DataFrame, logs: tuple[LogRead, ...], numbers: Sequence[int]
) -> Iterator[tuple[int, object]]:
    """Yield the conversations of the rows, log by log."""
    named = pl.Series("run", numbers, dtype=pl.UInt32)
    table = frame.select("log", TRANSCRIPT).with_columns(named).drop_nulls()
    for (number,), part in table.group_by("log", maintain_order=True):
        log = logs[int(number)]
        rows = dict(part.select(TRANSCRIPT, "run").iter_rows())
        try:
            _require_same(log)
            reader: Any = readers.get(log.reader)
        except (InputError, PlanError) as error:
            warnings.warn(f"transcripts are left out: {error}", stacklevel=6)
            continue
        for place, conversation in reader.read_conversations(Path(log.path)):
            if place in rows:
                yield rows[place], conversation


def _require_same(log: LogRead) -> None:
    """Raise unless a log is where it was, with the same content."""
    path = Path(log.path)
    if not path.exists():
        raise InputError(f"{path} is not there any more")
    if digest_log(path) != log.sha256:
        raise InputError(f"{path} is not the log that was read; read it again")
