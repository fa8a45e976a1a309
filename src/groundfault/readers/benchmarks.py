"""Benchmarks with a file format of their own: AlpacaEval, GSM8K, ZeroEval, MINT and tau-bench."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from groundfault.core.status import Status
from groundfault.errors import InputError
from groundfault.readers.formats import JsonFormat
from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import JsonObject, head, json_file, json_lines
from groundfault.readers.values import (
    dig,
    last_by,
    listing,
    mapping,
    name_of,
    number,
    settle,
    text,
    texts_by,
)


class _Annotation(msgspec.Struct):
    instruction: str
    generator_2: str
    generator_1: str = ""
    output_2: str | None = None
    preference: object = None
    annotator: str | None = None
    dataset: str | None = None
    time_per_example: object = None


class AlpacaEval(JsonFormat):
    """Reads ``annotations.json``: 1 is a win of the model over the baseline, 0.5 a tie.

    The file's preference lies between 1 (the baseline is better) and 2 (the model is better);
    graders that give probabilities use the numbers between. There are no ids: an example is named
    by a hash of its instruction. No preference is ``missing``.
    """

    tool = "alpaca_eval"
    suffixes = (".json",)
    opening = re.compile(rb"\s*\[")
    keys = ("instruction", "output_1", "generator_2", "preference")

    def observe(self, path: Path, log: Log) -> Iterator[Observation]:  # noqa: ARG002
        """Read one observation an annotation."""
        for position, one in enumerate(json_file(path, list[_Annotation]), 1):
            preference = number(one.preference)
            # older graders write 0 where their own reply could not be read: no tie and no loss
            is_lost = preference is not None and not 1 <= preference <= 2
            seconds = number(one.time_per_example)
            yield Observation(
                name_of(one.instruction),
                *settle(preference and preference - 1, Status.UNPARSED if is_lost else None),
                scorer=one.annotator or "preference",
                model=one.generator_2,
                task="AlpacaEval",
                prompt=one.instruction,
                response=one.output_2,
                attributes={"dataset": one.dataset, "baseline": one.generator_1},
                measured={"position": position, "judge": one.annotator, "seconds": seconds},
            )


class Gsm8k(JsonFormat):
    """Reads model solutions of OpenAI's GSM8K repository: a question a line, a column a model.

    A question in ``example_model_solutions.jsonl`` is named by a hash of its text.
    """

    tool = "grade-school-math"
    opening = re.compile(rb'\{"question"')
    keys = ("ground_truth", "is_correct")
    is_lines = True

    def observe(self, path: Path, log: Log) -> Iterator[Observation]:  # noqa: ARG002
        """Read one observation a question and model."""
        for position, row in enumerate(json_lines(path, dict[str, Any]), 1):
            question = row.get("question")
            if not isinstance(question, str):
                raise InputError(f"{path}, line {position} has no question")
            target = text(row.get("ground_truth"))
            for model, answer in row.items():
                # every key that is no model lacks it: question, ground_truth
                if "is_correct" not in mapping(answer):
                    continue
                yield Observation(
                    name_of(question),
                    *settle(answer["is_correct"]),
                    scorer="is_correct",
                    model=model,
                    task="GSM8K",
                    prompt=question,
                    response=text(answer.get("solution")),
                    # the ground truth is a worked solution that ends in "A: <number>"
                    target=target.rpartition("\nA: ")[2] if target else None,
                    measured={"position": position},
                )


_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_ANSWER = re.compile(r'"?answer"?\s*:\s*(?:"([^"]*)"|([^,\s}]+))')
_NUMERIC = ("gsm", "math-l5", "numersense-v2")
_EXACT = ("crux",)
_KNOWN = set(
    "session_id chat_history model_input output generator configs dataset id question".split()
)


class ZeroEval(JsonFormat):
    """Reads answers and grades them by ZeroEval's rule: its result files hold no verdicts.

    The answer is read from the JSON object in the output; without one the status is ``unparsed``.
    In ``crux`` it has to equal the target except for quotes; in ``gsm``, ``math-l5`` and
    ``numersense-v2`` the first number has to be the same. Other data sets are not graded here:
    their answers are ``missing``, with a note. Deviation: fractions are not computed.
    """

    tool = "zero_eval"
    suffixes = (".json",)
    # the first key of a row is near its start
    opening = re.compile(rb'\s*\[(?s:.{0,387})"session_id"')
    keys = ("chat_history", "model_input")

    def observe(self, path: Path, log: Log) -> Iterator[Observation]:
        """Read one observation an answer."""
        rows = json_file(path, list[dict[str, Any]])
        is_graded = {str(row.get("dataset")) for row in rows} <= {*_NUMERIC, *_EXACT}
        log.notes.append(
            "graded here by ZeroEval's rule: its result files hold no verdicts"
            if is_graded
            else "not graded: ZeroEval's result files hold no verdicts, and its rule for this data "
            "set is not known here"
        )
        for position, row in enumerate(rows, 1):
            outputs, dataset = row.get("output"), row.get("dataset")
            target = text(row.get("answer"))
            asked = next(iter(listing(row.get("chat_history"))), None)
            for epoch, output in enumerate(outputs if isinstance(outputs, list) else [outputs], 1):
                response = text(output)
                answer = None if response is None else _find_answer(response)
                is_whole = response is not None and target is not None
                score = _grade(str(dataset), answer, target or "") if is_whole else settle(None)
                yield Observation(
                    str(row.get("id", row.get("session_id"))),
                    *score,
                    scorer="accuracy",
                    model=text(row.get("generator")) or "",
                    task=text(dataset) or "",
                    epoch=epoch,
                    prompt=text(row.get("question")) or text(asked),
                    response=response,
                    answer=answer,
                    target=target,
                    attributes={key: value for key, value in row.items() if key not in _KNOWN},
                    measured={"position": position, "parsed": answer is not None},
                )


def _find_answer(output: str) -> str | None:
    """Return the answer in the JSON object of an output, else in text that resembles one."""
    # models break lines inside strings, which JSON forbids
    start, end = output.find("{"), output.rfind("}")
    try:
        data = json.loads(output[start : end + 1].replace("\n", ""))
    except (ValueError, RecursionError):
        match = _ANSWER.search(output)
        return (match[1] if match[1] is not None else match[2]) if match else None
    return str(data["answer"]) if isinstance(data, dict) and "answer" in data else None


def _grade(dataset: str, answer: str | None, target: str) -> tuple[float | None, str]:
    """Return score and status by ZeroEval's rule for a data set; missing without a rule."""
    if dataset not in (*_NUMERIC, *_EXACT):
        return settle(None)
    if answer is None:
        return settle(None, Status.UNPARSED)
    if dataset in _EXACT:
        # without outer quotes, and with line breaks as in a Python literal
        bare, right = (words.strip("'\"").replace("\n", "\\n") for words in (answer, target))
        return settle(bare == right)
    plain = (words.replace("$", "").replace(",", "") for words in (answer, target))
    numbers = [float(match[0]) if match else None for match in map(_NUMBER.search, plain)]
    return settle(None not in numbers and numbers[0] == numbers[1])


_RESULTS_NAME = re.compile(r"(?P<model>.+)_max\d+_(?P<task>.+)\.results")


class _State(msgspec.Struct):
    success: bool | None = None
    history: list[JsonObject] = []
    terminate_reason: str | None = None
    error: object = None
    agent_action_count: JsonObject | None = None
    token_counter: JsonObject | None = None


class _Task(msgspec.Struct):
    task_id: int | str
    prompt: str | None = None
    reference: object = None
    metadata: JsonObject = {}
    task_name: str = ""


class _EpisodeRow(msgspec.Struct):
    state: _State
    task: _Task


class Mint(JsonFormat):
    """Reads ``results.jsonl``; an episode that an error of the service ended is ``error``.

    The file does not name the model: it is taken from
    ``<model>/F=.../max5_.../<task>/results.jsonl``, or from ``<model>_max5_<task>.results.jsonl``.
    """

    tool = "mint"
    suffixes = (".jsonl",)
    opening = re.compile(rb'\{"state": \{"history"')
    is_lines = True

    def observe(self, path: Path, log: Log) -> Iterator[Observation]:  # noqa: ARG002
        """Read one observation an episode."""
        if name := _RESULTS_NAME.fullmatch(path.stem):
            model, benchmark = name["model"], name["task"]
        else:
            parts = path.resolve().parts
            turn = next((i for i, part in enumerate(parts) if part.startswith("F=")), 0)
            model, benchmark = parts[turn - 1] if turn else "", path.resolve().parent.name
        for position, row in enumerate(json_lines(path, _EpisodeRow), 1):
            state, task = row.state, row.task
            # success is false then, but the agent was stopped, not wrong
            is_error = state.error is not None or state.terminate_reason == "error"
            turns = texts_by(state.history, "assistant")
            yield Observation(
                str(task.task_id),
                *settle(state.success, Status.ERROR if is_error else None),
                scorer="success",
                model=model,
                task=benchmark,
                prompt=task.prompt,
                response=turns[-1] if turns else None,
                transcript=position,
                target=text(task.reference),
                attributes={"task_type": task.task_name, **task.metadata},
                measured={
                    "position": position,
                    "terminate_reason": state.terminate_reason,
                    "turns": len(turns),
                    "tool_calls": dig(state.agent_action_count, "use_tool"),
                    "invalid_actions": dig(state.agent_action_count, "invalid_action"),
                    "input_tokens": dig(state.token_counter, "prompt_tokens"),
                    "output_tokens": dig(state.token_counter, "completion_tokens"),
                },
            )

    def read_conversations(self, path: Path) -> Iterator[tuple[int, list[Any]]]:
        """Yield the messages of each episode."""
        for position, row in enumerate(json_lines(path, _EpisodeRow), 1):
            yield position, row.state.history


_RUN_NAME = re.compile(
    r"(?:(?:tool-calling|act|react|few-shot)-(?P<model>.+?)-[\d.]+_range_.*|(?P<short>.+)-(?:airline|retail).*)"
)
_POLICY = re.compile(r"#\s*(\w+) agent policy", re.IGNORECASE)
# termination reasons that tau2-bench leaves out of its metrics: the agent did not end the episode
_NOT_EVALUABLE = (
    "infrastructure_error", "context_window_exceeded", "unexpected_error", "user_error",
)  # fmt: skip


class _Episode(msgspec.Struct):
    task_id: int | str
    reward: object
    info: JsonObject = {}
    traj: list[JsonObject] = []
    trial: int = 0


class _Simulation(msgspec.Struct):
    task_id: int | str
    reward_info: JsonObject | None = None
    messages: list[JsonObject] | None = None
    trial: int | None = None
    termination_reason: str | None = None
    duration: Any = None


class _Results(msgspec.Struct):
    """A results file of tau2-bench."""

    simulations: list[_Simulation]
    tasks: list[JsonObject] = []
    info: JsonObject = {}


class TauBench(JsonFormat):
    """Reads the list of episodes that tau-bench checkpoints, and the results of tau2-bench.

    Trials of a task are its epochs. An episode that ended in an exception of the harness has reward
    0 in the file; here its status is ``error``, and so is the status of episodes that tau2-bench
    itself excludes.
    """

    tool = "tau_bench"
    suffixes = (".json",)
    opening = re.compile(
        rb'\s*(?:\[\s*\{\s*"task_id"\s*:(?s:.*)"reward"|\{(?s:(?=.*"agent_info").*"user_info"))'
    )

    def observe(self, path: Path, log: Log) -> Iterator[Observation]:
        """Read one observation an episode."""
        if head(path).lstrip().startswith(b"["):
            return _read_episodes(path, json_file(path, list[_Episode]))
        log.harness = "tau2_bench"
        return _read_simulations(json_file(path, _Results))

    def read_conversations(self, path: Path) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """Yield the messages of each episode."""
        if head(path).lstrip().startswith(b"["):
            yield from enumerate((one.traj for one in json_file(path, list[_Episode])), 1)
        else:
            runs = json_file(path, _Results).simulations
            yield from enumerate((one.messages or [] for one in runs), 1)


def _read_episodes(path: Path, episodes: list[_Episode]) -> Iterator[Observation]:
    name = _RUN_NAME.fullmatch(path.stem)
    model = (name["model"] or name["short"]) if name else path.stem
    # the file names no domain: the system prompt begins with "# Retail agent policy"
    policies = (
        _POLICY.match(words) for each in episodes for words in texts_by(each.traj[:1], "system")
    )
    domain = next((policy[1].lower() for policy in policies if policy), "")
    for position, one in enumerate(episodes, 1):
        actions, user = dig(one.info, "task", "actions"), dig(one.info, "task", "user_id")
        gold = {"user_id": user, "gold_actions": len(listing(actions))}
        observation = _read_turns(one, one.traj, one.reward, "error" in one.info)
        observation.model, observation.task = model, f"tau-bench {domain}".strip()
        observation.prompt = text(dig(one.info, "task", "instruction"))
        observation.target = text(actions)
        observation.attributes = gold if isinstance(actions, list) else {}
        cost = number(one.info.get("user_cost"))
        observation.measured = {"position": position, **observation.measured, "user_cost": cost}
        observation.transcript = position
        yield observation


def _read_simulations(results: _Results) -> Iterator[Observation]:
    tasks = {str(task.get("id")): task for task in results.tasks}
    domain = text(dig(results.info, "environment_info", "domain_name")) or ""
    for position, one in enumerate(results.simulations, 1):
        task = tasks.get(str(one.task_id), {})
        is_error = one.termination_reason in _NOT_EVALUABLE
        reward = dig(one.reward_info, "reward")
        observation = _read_turns(one, one.messages or [], reward, is_error)
        observation.model = text(dig(results.info, "agent_info", "llm")) or ""
        observation.task = f"tau2-bench {domain}".strip()
        observation.prompt = text(dig(task, "user_scenario", "instructions"))
        observation.target = text(dig(task, "evaluation_criteria", "actions"))
        observation.attributes = {"description": dig(task, "description", "purpose")}
        measured = {"position": position, **observation.measured, "seconds": number(one.duration)}
        observation.measured = {**measured, "termination_reason": one.termination_reason}
        observation.transcript = position
        yield observation


def _read_turns(
    one: _Episode | _Simulation, messages: list[JsonObject], reward: object, is_error: bool
) -> Observation:
    """Read the parts of an episode that both versions write alike."""
    roles = [message.get("role") for message in messages]
    return Observation(
        str(one.task_id),
        *settle(reward, Status.ERROR if is_error else None),
        scorer="reward",
        epoch=(one.trial or 0) + 1,
        response=last_by(messages, "assistant"),
        measured={"turns": roles.count("user"), "tool_calls": roles.count("tool")},
    )
