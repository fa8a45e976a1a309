"""Small logs by the real clients, with everything in them that a reader may get wrong.

    python scripts/make_client_logs.py inspect out/
    python scripts/make_client_logs.py promptfoo out/

Run it with the Python that has the client; promptfoo is found on the path, or where the variable
PROMPTFOO says. No model is asked: each client is given one that answers from a list, and a grader
that is down for some questions. ``tests/fixtures/clients`` holds what it wrote, and
``pytest -m clients`` writes it anew and reads that.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

RUNS = 3
PROMPTFOO = shutil.which(os.environ.get("PROMPTFOO", "promptfoo"))


def make_inspect_logs(folder: Path) -> None:
    """Three runs of two samples, one of three epochs, a set, and graders that are down."""
    from inspect_ai import Task, eval, eval_set
    from inspect_ai.dataset import Sample
    from inspect_ai.model import Model, ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import Score, Target, match, mean, model_graded_qa, scorer
    from inspect_ai.solver import TaskState, solver

    def answer(text: str) -> ModelOutput:
        output = ModelOutput.from_content("mockllm/model", text)
        output.usage = ModelUsage(input_tokens=3, output_tokens=1, total_tokens=4)
        return output

    asked: dict[str, int] = {}

    def reply(messages: list[Any], *_: Any) -> ModelOutput:
        question = messages[-1].text
        asked[question] = asked.get(question, -1) + 1
        right = {"Question 0?": "yny", "Question 1?": "nny"}
        return answer({"y": "yes", "n": "no"}[right[question][asked[question] % RUNS]])

    def grade(messages: list[Any], *_: Any) -> ModelOutput:
        return answer("503 Service Unavailable" if "Question 1?" in str(messages) else "GRADE: C")

    def model(replies: Callable[..., ModelOutput]) -> Model:
        return get_model("mockllm/model", custom_outputs=replies, memoize=False)

    @scorer(metrics=[mean()])
    def broken() -> Any:
        async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001
            if state.sample_id == "q1":
                raise RuntimeError("sandbox is gone")
            return Score(value=1)

        return score

    def task(name: str, **more: Any) -> Task:
        languages = ("de", "en")
        samples = [
            Sample(id=f"q{i}", input=f"Question {i}?", target="yes", metadata={"lang": language})
            for i, language in enumerate(languages)
        ]
        return Task(dataset=samples, name=name, **more)

    def run(name: str, place: Path, epochs: int = 1, **more: Any) -> None:
        eval(
            task(name, **more),
            model=model(reply),
            epochs=epochs,
            log_dir=str(place),
            display="none",
            max_samples=1,
            fail_on_error=False,
        )

    for _ in range(RUNS):
        run("runs", folder / "runs", scorer=match())
    asked.clear()
    run("runs", folder / "epochs", RUNS, scorer=match())
    run("graded", folder / "graded", scorer=model_graded_qa(model=model(grade)))
    run("broken", folder / "broken", scorer=broken())
    asked.clear()
    eval_set(
        [task("one", scorer=match()), task("two", scorer=match())],
        log_dir=str(folder / "set"),
        model=model(reply),
        display="none",
        max_samples=1,
        max_tasks=1,
    )
    tries: dict[str, int] = {}

    @solver
    def flaky() -> Any:
        async def solve(state: TaskState, generate: Any) -> TaskState:  # noqa: ARG001
            name = str(state.sample_id)
            tries[name] = tries.get(name, 0) + 1
            if name == "q1" and tries[name] == 1:
                raise RuntimeError("the first try fails")
            state.output = answer("yes")
            return state

        return solve

    eval_set(
        [task("flaky", solver=flaky(), scorer=match())],
        log_dir=str(folder / "retried"),
        model="mockllm/model",
        retry_wait=1,
        retry_cleanup=False,
        display="none",
        max_samples=1,
    )


def make_many_inspect_logs(folder: Path) -> None:
    """Five runs of 120 samples that fail more often in German, and one run of five epochs."""
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import match

    asked: dict[int, int] = {}

    def reply(messages: list[Any], *_: Any) -> ModelOutput:
        number = int(messages[-1].text.split()[1].rstrip("?"))
        asked[number] = asked.get(number, -1) + 1
        chance = Random(f"{number} {asked[number]}").random()
        is_wrong = chance < (0.15 if number % 4 else 0.4)
        output = ModelOutput.from_content("mockllm/model", "no" if is_wrong else "yes")
        output.usage = ModelUsage(input_tokens=3, output_tokens=1, total_tokens=4)
        return output

    samples = [
        Sample(
            id=f"q{i:03d}",
            input=f"Question {i}?",
            target="yes",
            metadata={"lang": "en" if i % 4 else "de", "words": i * 37 % 50},
        )
        for i in range(120)
    ]
    for name, runs, epochs in (("runs", 5, 1), ("epochs", 1, 5)):
        asked.clear()
        for _ in range(runs):
            eval(
                Task(dataset=samples, name="many", scorer=match()),
                model=get_model("mockllm/model", custom_outputs=reply, memoize=False),
                epochs=epochs,
                log_dir=str(folder / name),
                display="none",
                max_samples=1,
            )


def make_scans(folder: Path) -> None:
    """Two epochs of eight samples, and a scan: three scanners, of which one has a validation set.

    One scanner crashes on a sample, and one returns several labels.
    """
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import includes
    from inspect_scout import (
        Result,
        ValidationCase,
        ValidationSet,
        scan,
        scanner,
        transcripts_from,
    )

    def act(messages: list[Any], *_: Any) -> ModelOutput:
        number = int(messages[0].text.split()[1])
        said = f"The answer is {number}" if number % 3 else "Sorry, I cannot."
        output = ModelOutput.from_content("mockllm/model", said)
        output.usage = ModelUsage(input_tokens=9, output_tokens=3, total_tokens=12)
        return output

    @scanner(messages="all")
    def refuses() -> Any:
        async def look(transcript) -> Result:  # type: ignore[no-untyped-def]
            said = transcript.messages[-1].text
            return Result(value="cannot" in said, explanation=said)

        return look

    @scanner(messages="all")
    def n_words() -> Any:
        async def look(transcript) -> Result:  # type: ignore[no-untyped-def]
            if transcript.task_id == "q1":
                raise ValueError("an odd transcript")
            return Result(value=len(transcript.messages[-1].text.split()))

        return look

    @scanner(messages="all")
    def signs() -> Any:
        async def look(transcript) -> list[Result]:  # type: ignore[no-untyped-def]
            said = transcript.messages[-1].text
            return [Result(value=True, label=word) for word in ("Sorry", "answer") if word in said]

        return look

    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    samples = [Sample(id=f"q{n}", input=f"Say {n} please", target=str(n)) for n in range(8)]
    (log,) = eval(
        Task(dataset=samples, scorer=includes(), name="say"),
        model=get_model("mockllm/model", custom_outputs=act, memoize=False),
        epochs=2,
        log_dir="logs",
        display="none",
        max_samples=1,
    )
    cases = [
        ValidationCase(id=one.uuid, target=one.id in ("q0", "q3", "q4"))
        for one in log.samples or ()
    ]
    scan(
        [refuses(), n_words(), signs()],
        transcripts=transcripts_from("logs"),
        scans="scans",
        validation={"refuses": ValidationSet(cases=cases)},
        max_processes=1,
    )


def make_promptfoo_logs(folder: Path) -> None:
    """A pass, a failure, a refusal, and a grading model that is down, in four files."""
    if PROMPTFOO is None:
        raise SystemExit("promptfoo is not on the path: npm install promptfoo")
    exact = {"type": "equals", "value": "yes", "metric": "exact"}
    down = {"type": "llm-rubric", "value": "the grader is down", "metric": "rubric"}
    tests = [
        ("right", "de", [exact]),
        ("wrong", "de", [exact]),
        ("refusal", "de", [exact]),
        ("right", "en", [exact, down]),
    ]
    config = {
        "prompts": ["{{kind}} {{lang}} {{number}}"],
        "providers": [{"id": "file://provider.js", "label": "fake"}],
        "defaultTest": {"options": {"provider": "file://grader.js"}},
        "tests": [
            {"vars": {"kind": kind, "lang": lang, "number": i}, "assert": assertions}
            for i, (kind, lang, assertions) in enumerate(tests)
        ],
    }
    with TemporaryDirectory() as place:
        Path(place, "promptfooconfig.json").write_text(json.dumps(config))
        Path(place, "provider.js").write_text(_PROVIDER)
        Path(place, "grader.js").write_text(_GRADER)
        names = [f"results.{suffix}" for suffix in ("json", "yaml", "jsonl", "csv")]
        settings = ("TELEMETRY", "UPDATE", "REMOTE_GENERATION")
        environment = {f"PROMPTFOO_DISABLE_{name}": "1" for name in settings}
        command = [PROMPTFOO, "eval", "-c", "promptfooconfig.json", "--no-cache", "--no-table"]
        subprocess.run(
            [*command, *(word for name in names for word in ("-o", name))],
            cwd=place,
            env={**os.environ, **environment, "PROMPTFOO_CONFIG_DIR": f"{place}/home"},
            stdout=subprocess.DEVNULL,
            check=False,  # it exits with 100 where a test fails
        )
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            shutil.copy(Path(place, name), folder / name)


_PROVIDER = """
const words = {right: 'yes', wrong: 'no', refusal: 'I cannot help'};
module.exports = class {
  id() { return 'fake'; }
  async callApi(prompt, {vars}) {
    const tokenUsage = {total: 3, prompt: 2, completion: 1};
    return {output: words[vars.kind], isRefusal: vars.kind === 'refusal', tokenUsage};
  }
};
"""
_GRADER = """
module.exports = class {
  id() { return 'grader'; }
  async callApi() { return {error: 'API error: 503 Service Unavailable'}; }
};
"""


def make_deepeval_logs(folder: Path) -> None:
    """Five cases under two metrics, one of which raises for the English ones."""
    os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "DEEPEVAL_RESULTS_FOLDER": str(folder)}
    from deepeval import evaluate
    from deepeval.evaluate.configs import AsyncConfig, DisplayConfig, ErrorConfig
    from deepeval.metrics import BaseMetric
    from deepeval.test_case import LLMTestCase

    class Exact(BaseMetric):  # type: ignore[misc, unused-ignore]
        threshold, async_mode, error = 0.5, False, None
        include_reason, strict_mode, evaluation_model = False, False, "none"

        def measure(self, case: LLMTestCase, *_: Any, **__: Any) -> float:
            self.score = float(case.actual_output == case.expected_output)
            self.success = self.score >= self.threshold
            return self.score

        async def a_measure(self, case: LLMTestCase, *_: Any, **__: Any) -> float:
            return self.measure(case)

        def is_successful(self) -> bool:
            return self.error is None and bool(self.success)

        @property
        def __name__(self) -> str:
            return type(self).__name__

    class Judge(Exact):
        def measure(self, case: LLMTestCase, *_: Any, **__: Any) -> float:
            if case.input.startswith("en"):
                raise RuntimeError("503 Service Unavailable")
            self.score, self.success = 1.0, True
            return 1.0

    answers = [("de", "yes"), ("de", "no"), ("en", "yes"), ("en", "no"), ("en", "yes")]
    cases = [
        LLMTestCase(
            name=f"case {i}",
            input=f"{lang} {i}",
            actual_output=answer,
            expected_output="yes",
            metadata={"lang": lang},
        )
        for i, (lang, answer) in enumerate(answers)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as place:
        os.chdir(place)  # it writes a folder of its own beside the results
        evaluate(
            cases,
            [Exact(), Judge()],
            async_config=AsyncConfig(run_async=False),
            display_config=DisplayConfig(show_indicator=False, print_results=False),
            error_config=ErrorConfig(ignore_errors=True),
        )
        os.chdir(folder)


def make_lm_eval_logs(folder: Path) -> None:
    """Six questions under two filters, one of which finds nothing and says so in its own words."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    from lm_eval import simple_evaluate
    from lm_eval.loggers import EvaluationTracker

    take = {"function": "take_first"}
    strict = {"function": "regex", "regex_pattern": r"answer is (\w+)", "fallback": "none found"}
    with TemporaryDirectory() as place:
        os.environ["HF_HOME"] = place
        questions = Path(place, "questions.jsonl")
        rows = [
            {"id": f"q{i}", "question": f"Question {i}?", "answer": "lol" if i % 2 else "yes"}
            for i in range(6)
        ]
        questions.write_text("\n".join(map(json.dumps, rows)))
        task = {
            "task": "questions",
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": {"test": str(questions)}},
            "test_split": "test",
            "output_type": "generate_until",
            "doc_to_text": "{{question}}",
            "doc_to_target": "{{answer}}",
            "generation_kwargs": {"until": ["\n"]},
            "metric_list": [{"metric": "exact_match", "aggregation": "mean"}],
            "filter_list": [
                {"name": "strict", "filter": [strict, take]},
                {
                    "name": "loose",
                    "filter": [{"function": "regex", "regex_pattern": r"(\w+)"}, take],
                },
            ],
        }
        tracker = EvaluationTracker(output_path=str(folder))
        results = simple_evaluate(
            "dummy", tasks=[task], log_samples=True, evaluation_tracker=tracker
        )
        samples = results.pop("samples")
        # the description of the machine is long, and of no use to a reader
        for key in ("pretty_env_info", "git_hash"):
            results.pop(key, None)
        tracker.save_results_aggregated(results, samples)
        tracker.save_results_samples("questions", samples["questions"])


CLIENTS: dict[str, Callable[[Path], None]] = {
    "inspect": make_inspect_logs,
    "scans": make_scans,
    "promptfoo": make_promptfoo_logs,
    "deepeval": make_deepeval_logs,
    "lm_eval": make_lm_eval_logs,
}

if __name__ == "__main__":
    CLIENTS[sys.argv[1]](Path(sys.argv[2]).resolve())
