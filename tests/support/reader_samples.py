"""Small logs as their tools write them, for formats of which the shared data has no real file."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import polars as pl

from groundfault import readers
from groundfault.readers.log import Log, Observation


def read(path: Path, name: str) -> tuple[Log, list[Observation]]:
    """Found by its content, read to its end, and a table can hold it."""
    assert readers.sniff(path) == name
    log = readers.read(path)
    observations = list(log.observations)
    list(Log(observations).tables())
    return log, observations


def write_json(path: Path, content: Any) -> Path:
    """JSON, or JSON lines where the name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = content if path.suffix == ".jsonl" else [content]
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return path


def write_csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    """A table with the columns of all rows."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, names)
        writer.writeheader()
        writer.writerows(rows)
    return path


ANNOTATION = {
    "instruction": "Name a bird.",
    "output_1": "A wren.",
    "generator_1": "text_davinci_003",
    "dataset": "selfinstruct",
    "output_2": "A robin.",
    "generator_2": "my-model",
    "annotator": "alpaca_eval_gpt4",
    "preference": 2.0,
}

_SPEC = {
    "completion_fns": ["gpt-4", "judge"],
    "eval_name": "arith.dev.v0",
    "split": "dev",
    "run_config": {},
}


def event(number: int, sample: str, kind: str, data: dict[str, Any]) -> dict[str, Any]:
    """One event of OpenAI evals."""
    return {
        "run_id": "r",
        "event_id": number,
        "sample_id": sample,
        "type": kind,
        "data": data,
        "created_by": "",
    }


EVALS = [
    {"spec": _SPEC},
    event(
        0,
        "arith.dev.0",
        "sampling",
        {"prompt": [{"role": "user", "content": "1+1"}], "sampled": ["2"]},
    ),
    event(1, "arith.dev.1", "sampling", {"prompt": "2+2", "sampled": "5"}),
    event(
        2,
        "arith.dev.0",
        "match",
        {"correct": True, "expected": "2", "picked": "2", "options": ["2", "3"]},
    ),
    event(3, "arith.dev.1", "match", {"correct": False, "expected": ["4", "four"], "picked": []}),
    event(4, "arith.dev.1", "metrics", {"accuracy": 0.0, "f1_score": 0.25}),
    event(5, "arith.dev.2", "sampling", {"prompt": "3+3", "sampled": "6"}),
    event(6, "arith.dev.2", "sampling", {"prompt": "is 6 right?", "sampled": "Y"}),
    event(7, "arith.dev.2", "metrics", {"choice": "__invalid__", "score": None}),
    event(8, "arith.dev.3", "error", {"type": "RateLimit", "message": "too many"}),
    event(9, "arith.dev.4", "sampling", {"prompt": "4+4", "sampled": "8"}),
    {"final_report": {"accuracy": 0.5}, "run_id": "r"},
]


def attempt(
    status: int, number: int, outputs: list[Any], results: dict[str, list[float | None]]
) -> dict[str, Any]:
    """One attempt of garak."""
    turn = {"role": "user", "content": {"text": f"prompt {number}", "lang": "en"}}
    return {
        "entry_type": "attempt",
        "uuid": f"u{number}",
        "seq": number,
        "status": status,
        "probe_classname": "dan.Dan_11_0",
        "prompt": {"turns": [turn], "notes": {}},
        "outputs": [None if text is None else {"text": text, "lang": "en"} for text in outputs],
        "detector_results": results,
        "goal": "break out",
    }


GARAK = [
    {
        "entry_type": "start_run setup",
        "plugins.target_type": "openai",
        "plugins.target_name": "gpt-4o-mini",
    },
    {"entry_type": "init", "garak_version": "0.17.1", "run": "x"},
    attempt(1, 0, ["no", "yes"], {}),
    attempt(1, 1, ["no"], {}),
    attempt(
        2, 0, ["no", "yes"], {"dan.DAN": [0.0, 1.0], "mitigation.MitigationBypass": [0.25, None]}
    ),
    attempt(2, 2, [None], {"dan.DAN": [None]}),
    {
        "entry_type": "eval",
        "probe": "dan.Dan_11_0",
        "detector": "dan.DAN",
        "passed": 1,
        "total_evaluated": 2,
    },
    {"entry_type": "completion", "end_time": "t", "run": "x"},
]


def failure(name: str, kind: str) -> dict[str, Any]:
    """One line of a BFCL score file."""
    question = [[{"role": "user", "content": f"call {name}"}]]
    return {
        "id": name,
        "model_name": "org/model",
        "valid": False,
        "error": ["wrong"],
        "error_type": kind,
        "prompt": {"id": name, "question": question, "function": []},
        "model_result_raw": "[f(x=2)]",
        "possible_answer": [{"f": {"x": [1]}}],
    }


BFCL = [
    {"accuracy": 0.4, "correct_count": 2, "total_count": 5},
    failure("simple_1", "value_error:others"),
    failure("simple_2", "ast_decoder:decoder_failed"),
    failure("simple_4", "value_error:others"),
]
BFCL_RESULTS = [
    {
        "id": f"simple_{i}",
        "result": "Error during inference: 500" if i == 4 else "[f(x=1)]",
        "latency": 0.5,
    }
    for i in range(5)
]

PHOENIX: list[dict[str, Any]] = [
    {
        "example_id": "RGF0YXNldEV4YW1wbGU6MQ==",
        "repetition_number": r,
        "input": {"question": "2+2"},
        "reference_output": {"answer": "4"},
        "output": "4" if r == 1 else None,
        "error": None if r == 1 else "TimeoutError()",
        "latency_ms": 1500.0,
        "trace_id": "t",
        "prompt_token_count": 9,
        "completion_token_count": 3,
        "annotations": [
            {"name": "match", "annotator_kind": "CODE", "label": None, "score": 1.0, "error": None},
            {
                "name": "judge",
                "annotator_kind": "LLM",
                "label": "incorrect",
                "score": None,
                "error": None,
            },
            {
                "name": "tone",
                "annotator_kind": "HUMAN",
                "label": "polite",
                "score": None,
                "error": None,
            },
            {
                "name": "flaky",
                "annotator_kind": "LLM",
                "label": None,
                "score": None,
                "error": "no answer",
            },
        ],
    }
    for r in (1, 2)
]


def phoenix_csv() -> list[dict[str, Any]]:
    """The same runs as Phoenix writes them to CSV."""
    flat = []
    for run in PHOENIX:
        row = {
            k: json.dumps(v) if isinstance(v, dict) else v
            for k, v in run.items()
            if k != "annotations"
        }
        for annotation in run["annotations"]:
            row |= {
                f"annotation_{annotation['name']}_{key}": value
                for key, value in annotation.items()
                if key != "name"
            }
        flat.append(row)
    return flat


def mark_otlp(**values: Any) -> list[dict[str, Any]]:
    """Attributes as OTLP writes them; two underscores stand for a dot."""
    kinds = {str: "stringValue", int: "intValue", float: "doubleValue"}
    return [
        {
            "key": key.replace("__", "."),
            "value": {kinds[type(v)]: str(v) if isinstance(v, int) else v},
        }
        for key, v in values.items()
    ]


def make_otlp_trace(number: int, score: float) -> list[dict[str, Any]]:
    """The spans of one trace, last first; the evaluation is an event of the agent's span."""
    trace = {"traceId": f"t{number}"}
    result = mark_otlp(gen_ai__evaluation__name="solved", gen_ai__evaluation__score__value=score)
    return [
        {
            **trace,
            "spanId": "c",
            "name": "execute_tool pay",
            "startTimeUnixNano": "30",
            "status": {"code": 2, "message": "Error: no funds"},
            "attributes": mark_otlp(
                gen_ai__operation__name="execute_tool", gen_ai__tool__name="pay"
            ),
        },
        {
            **trace,
            "spanId": "b",
            "name": "chat",
            "startTimeUnixNano": "20",
            "attributes": mark_otlp(
                gen_ai__operation__name="chat",
                gen_ai__request__model="m",
                gen_ai__usage__output_tokens=7,
                gen_ai__output__messages="I will pay.",
            ),
        },
        {
            **trace,
            "spanId": "a",
            "name": "invoke_agent desk",
            "startTimeUnixNano": "10",
            "attributes": mark_otlp(gen_ai__operation__name="invoke_agent"),
            "events": [{"name": "gen_ai.evaluation.result", "attributes": result}],
        },
    ]


LANGFUSE = [
    {
        "id": f"s{i}",
        "timestamp": "2026-01-01",
        "source": "EVAL",
        "name": name,
        "dataType": kind,
        "value": value,
        "stringValue": label,
        "comment": None,
        "traceId": f"t{i // 2}",
        "observationId": None if i < 2 else f"o{i}",
        "traceName": "qa",
    }
    for i, (name, kind, value, label) in enumerate(
        [
            ("accuracy", "NUMERIC", 0.75, None),
            ("helpful", "BOOLEAN", 1, "True"),
            ("verdict", "CATEGORICAL", 0, "incorrect"),
            ("tone", "CATEGORICAL", 2, "warm"),
        ]
    )
]
LANGFUSE_TRACES = [
    {
        "id": "t1",
        "timestamp": "2026-01-01",
        "name": "qa",
        "projectId": "p",
        "input": {"question": "2+2"},
        "output": "4",
        "metadata": {"level": "easy"},
        "tags": ["a"],
        "latency": 1.5,
        "accuracy": [1, 0],
        "verdict": ["correct"],
        "tone": None,
    },
    {
        "id": "t2",
        "timestamp": "x",
        "name": "qa",
        "projectId": "p",
        "input": "q",
        "output": "a",
        "accuracy": None,
    },
]

LABEL_STUDIO = [
    {
        "id": 7,
        "data": {
            "example_id": "ex7",
            "question": "2+2",
            "response": "4",
            "model": "m",
            "level": "easy",
        },
        "annotations": [
            {
                "id": 70,
                "completed_by": {"id": 3, "email": "a@example.org"},
                "was_cancelled": False,
                "lead_time": 4.5,
                "result": [
                    {
                        "from_name": "verdict",
                        "to_name": "t",
                        "type": "choices",
                        "value": {"choices": ["Correct"]},
                    },
                    {
                        "from_name": "tone",
                        "to_name": "t",
                        "type": "choices",
                        "value": {"choices": ["Warm"]},
                    },
                    {
                        "from_name": "stars",
                        "to_name": "t",
                        "type": "rating",
                        "value": {"rating": 4},
                    },
                    {
                        "from_name": "span",
                        "to_name": "t",
                        "type": "labels",
                        "value": {"labels": ["X"], "start": 1},
                    },
                ],
            },
            {"id": 71, "completed_by": 4, "was_cancelled": True, "result": []},
        ],
        "predictions": [],
    },
    {"id": 8, "data": {"text": "raw"}, "annotations": [], "predictions": []},
]
LABEL_STUDIO_MIN = [
    {
        "id": 7,
        "example_id": "ex7",
        "question": "2+2",
        "verdict": "Wrong",
        "annotator": 3,
        "annotation_id": 70,
        "lead_time": 4.5,
        "created_at": "x",
        "updated_at": "x",
    }
]


def lighteval_details() -> pl.DataFrame:
    """Details as lighteval 0.13 writes them: a generated answer and a multiple choice."""
    doc = {
        "query": "Q: 2+2\nA:",
        "original_query": "2+2",
        "choices": ["3", "4"],
        "gold_index": [1],
        "task_name": "arith|0",
    }
    response = {
        "text": ["4"],
        "output_tokens": [[1, 2]],
        "logprobs": [-2.0, -0.5],
        "truncated_tokens_count": 0,
    }
    return pl.DataFrame(
        [
            {
                "doc": doc | {"id": str(i), "specific": {"level": "easy"}},
                "model_response": response,
                "metric": {"acc": 1 - i, "em_with_type_exact_match": 0.5, "corpus": [1.0, 2.0]},
            }
            for i in (0, 1)
        ]
    )


def all_samples(folder: Path) -> dict[str, Path]:
    """One file of each format, by the name of its reader."""
    details = folder / "details/org/model/2026-01-01T00-00-00.000000"
    details.mkdir(parents=True)
    parquet = details / "details_arith|0_2026-01-01T00-00-00.000000.parquet"
    lighteval_details().write_parquet(parquet)
    write_json(folder / "result/org_model/BFCL_v3_simple_result.jsonl", BFCL_RESULTS).rename(
        folder / "result/org_model/BFCL_v3_simple_result.json"
    )
    bfcl = write_json(folder / "score/org_model/BFCL_v3_simple_score.jsonl", BFCL)
    return {
        "alpaca_eval": write_json(folder / "annotations.json", [ANNOTATION]),
        "openai_evals": write_json(folder / "evals.jsonl", EVALS),
        "garak": write_json(folder / "garak.x.report.jsonl", GARAK),
        "bfcl": bfcl.rename(bfcl.with_suffix(".json")),
        "phoenix": write_json(folder / "experiment.json", PHOENIX),
        "langfuse": write_json(folder / "scores.jsonl", LANGFUSE),
        "opentelemetry": write_json(
            folder / "traces.jsonl",
            [
                {"resourceSpans": [{"scopeSpans": [{"spans": make_otlp_trace(n, n / 2)}]}]}
                for n in range(3)
            ],
        ),
        "label_studio": write_json(folder / "project-1.json", LABEL_STUDIO),
        "lighteval": parquet,
    }


def every_eval_ever(folder: Path) -> Path:
    """Instance records: one answered in a word, one in a conversation."""
    record = {
        "schema_version": "0.2.2",
        "evaluation_id": "arith/m/1",
        "model_id": "org/m",
        "evaluation_name": "arith",
        "sample_id": "s0",
        "interaction_type": "single_turn",
        "input": {"raw": "2+2", "reference": ["4"], "choices": ["3", "4"]},
        "output": {"raw": ["4"]},
        "answer_attribution": [
            {"extracted_value": "4", "extraction_method": "exact_match", "is_terminal": True}
        ],
        "evaluation": {"score": 1.0, "is_correct": True},
        "token_usage": {"input_tokens": 3, "output_tokens": 1, "total_tokens": 4},
        "metadata": {"level": "easy"},
    }
    talk = {"output": None, "messages": [{"role": "assistant", "content": "4"}], "sample_id": "s1"}
    return write_json(folder / "x_samples.jsonl", [record, record | talk])
