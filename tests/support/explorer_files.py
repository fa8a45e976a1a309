"""Files of the explorer: written from small reports, and read again without a browser."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import groundfault
from groundfault import Candidate, Evidence, Plan

MODELS = ("alpha", "beta")

HOSTILE = (
    "<script>window.HIT=1</script>",
    "</script><script>window.HIT=1</script>",
    "<img src=x onerror=window.HIT=1>",
    "<svg onload=window.HIT=1>",
    "<svg><script>window.HIT=1</script></svg>",
    '"><img src=x onerror=window.HIT=1>',
    "' onfocus=window.HIT=1 autofocus='",
    "javascript:window.HIT=1",
    "<a href='javascript:window.HIT=1'>x</a>",
    "<iframe srcdoc='<script>parent.HIT=1</script>'>",
    "<iframe src=http://example.invalid/>",
    "<link rel=stylesheet href=http://example.invalid/a.css>",
    "<style>body{display:none}</style>",
    "<meta http-equiv=refresh content='0;url=http://example.invalid'>",
    "<base href=http://example.invalid/>",
    "<form action=http://example.invalid><button>x",
    "<object data=http://example.invalid>",
    "<math><mi xlink:href='javascript:window.HIT=1'>x",
    "<template><script>window.HIT=1</script></template>",
    "<!--", "-->", "]]>", "</style>", "</textarea><script>window.HIT=1</script>",
    "{{ 7*7 }}${7*7}<%= 7*7 %>", "=HYPERLINK(\"http://example.invalid\")", "+1+cmd|' /C calc'!A0",
    "\x1b[31mred\x1b[0m\x07", "\u202egnp.exe\u202c", "\u2066hidden\u2069\ufeff",
    "a\x00b\x08c", "line\u2028break\u2029end", "%3Cscript%3E", "&lt;script&gt;&#x3c;",
    "__proto__", "constructor", "\U0001f600\ufffd",
)  # fmt: skip


def make_results(count: int = 120) -> pl.DataFrame:
    """Answers of two models: alpha fails on long German prompts, beta on negations."""
    rows = []
    for i in range(count):
        negated = i % 3 == 0
        prompt = (
            f"Nothing is here. Is {i} {'not ' if negated else ''}even? \U0001f600 Say why, briefly."
        )
        for model in MODELS:
            german, size = i % 2 == 0, i % 5
            wrong = (german and size > 2) if model == "alpha" else negated
            rows.append(
                {
                    "id": f"q{i:03}",
                    "model": model,
                    "prompt": prompt,
                    "answer": f"{model} says {i}",
                    "lang": "de" if german else "en",
                    "size": size,
                    "error": int(wrong if i % 13 else not wrong),
                }
            )
    return pl.DataFrame(rows)


def make_hostile(count: int = 120) -> pl.DataFrame:
    """One model, and something hostile in every field and in the name of every column."""
    text = [HOSTILE[i % len(HOSTILE)] for i in range(count)]
    bad = HOSTILE[2]
    return pl.DataFrame(
        {
            f"id{bad}": [f"{i} {t}" for i, t in enumerate(text)],
            f"prompt {HOSTILE[0]}": [
                f"Say it is {t} and not {i}, please, now." for i, t in enumerate(text)
            ],
            f"kind{bad}": [HOSTILE[i % 4] for i in range(count)],
            # what every object of a browser has
            "constructor": [f"It is {t}, or so they say, {i}." for i, t in enumerate(text)],
            "__proto__": [f"{t} once more and at length, {i}" for i, t in enumerate(text)],
            "size": [i % 5 for i in range(count)],
            "error": [int((i % 4 == 2) != (i % 17 == 0)) for i in range(count)],
        }
    )


def write_report(
    place: Path, table: pl.DataFrame, *, judge: str = "max-t", pages: bool = False, **roles: str
) -> Path:
    """An audit of a table, its ledger beside it; where the report is.

    Its pages take the longest, and few tests read them."""
    table.write_parquet(place / "answers.parquet")
    evidence = Evidence.from_table(place / "answers.parquet", outcome="error", **roles)
    kind = next(name for name in table.columns if name.startswith(("lang", "kind")))
    quoted = '"' + kind.replace('"', '""') + '"'
    value = table[kind][4 if kind == "lang" else 2].replace("'", "''")
    rules = [Candidate("labelled", f"{quoted} = '{value}'"), Candidate("large", "size > 2")]
    if "prompt" in table.columns:
        # a word, and two with what stands between them
        rules.append(Candidate("negated", "prompt ~* '\\bNOT\\b'"))
        rules.append(Candidate("not even", "prompt ~* 'not even'"))
    report = groundfault.audit(evidence, Plan(judge=judge), rules, ledger=place / "ledger.db")
    if pages:
        report.write(place / "report")
    else:
        (place / "report").mkdir()
        report.to_json(place / "report" / "report.json")
        report.library.freeze(place / "report" / "library.json")
    return place / "report"


def sort_rows(masks: NDArray[np.bool_], rule: dict[str, Any]) -> dict[str, list[int]]:
    """Rows of each side of a rule, of masks one a row, as the client sorts them."""
    number, count = masks[rule["masks"]].sum(axis=0), len(rule["masks"])
    here, wrong, model = (masks[rule[name]] for name in ("here", "wrong", "model"))
    inside, near = number == count, here & (number == count - 1)
    sides = {
        "failing": inside & here & wrong,
        "passing": inside & here & ~wrong,
        "near": near,
        "unscored": inside & model & ~here,
    }
    return {name: np.flatnonzero(mask).tolist() for name, mask in sides.items()}


def unpack_masks(text: str, rows: int) -> NDArray[np.bool_]:
    """Masks, one a row."""
    content = np.frombuffer(gzip.decompress(b64decode(text)), dtype=np.uint8)
    bits = np.unpackbits(
        content.reshape(-1, (rows + 7) // 8), axis=1, count=rows, bitorder="little"
    )
    return bits.astype(np.bool_)


def unpack_text(text: str) -> str:
    """What a block holds, byte by byte."""
    return gzip.decompress(b64decode(text)).decode("latin-1")


class Explorer:
    """What a server tells the client, read as the client reads it."""

    def __init__(self, client: Any) -> None:
        self.client, self.report = client, client.get("/data/report").json()
        self.names = [column["name"] for column in self.report["columns"]]

    def rule(self, **query: Any) -> dict[str, Any]:
        """A rule as it is described, counted first where it is new."""
        self.client.get("/examples", params=query)
        answer = self.client.get("/data/rule", params=query)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def sides(self, **query: Any) -> dict[str, list[str]]:
        """Ids of each side, those that stand first before the others."""
        rule = self.rule(**query)
        sides = sort_rows(unpack_masks(rule["pool"], self.report["rows"]), rule)
        order = {row: place for place, row in enumerate(rule["first"])}
        return {
            name: self.ids(sorted(rows, key=lambda row: (order.get(row, len(order)), row)))
            for name, rows in sides.items()
        }

    def mask(self, **query: Any) -> list[int]:
        """Rows for which filters hold, or in which words are."""
        answer = self.client.get("/data/mask", params=query)
        assert answer.status_code == 200, answer.text
        return [int(row) for row in np.flatnonzero(unpack_masks(answer.text, self.report["rows"]))]

    def values(self, rows: list[int], *names: str, **query: Any) -> dict[str, Any]:
        """Values of some rows, marks in them, and rows of the same example."""
        places = [self.names.index(name) for name in names or self.names]
        return dict(
            self.client.get("/data/values", params={"row": rows, "column": places, **query}).json()
        )

    def ids(self, rows: list[int]) -> list[str]:
        """Ids of some rows, however many."""
        parts = [rows[start : start + 100] for start in range(0, len(rows), 100)]
        return [id for part in parts for id in self.values(part, self.report["id"])["values"][0]]


class ExplorerFile:
    """What one file holds, read as its page reads it."""

    def __init__(self, path: Path) -> None:
        self.text = path.read_text(encoding="utf-8")
        pattern = r'<script type="text/plain" id="([\w-]+)">([^<]*)</script>'
        self.blocks = dict(re.findall(pattern, self.text))
        self.shell = re.sub(pattern, "", self.text)
        self.report: dict[str, Any] = self.json("report")
        names = [column["name"] for column in self.report["columns"]]
        self.columns = {name: self.rows(f"column-{place}") for place, name in enumerate(names)}

    def bytes(self, name: str) -> bytes:
        return gzip.decompress(b64decode(self.blocks[name], validate=True))

    def json(self, name: str) -> Any:
        return json.loads(self.bytes(name))

    def sides(self, rule: int) -> dict[str, list[int]]:
        """Rows of each side of a rule."""
        masks = unpack_masks(self.blocks["masks"], self.report["rows"])
        return sort_rows(masks, self.report["rules"][rule])

    def rows(self, name: str) -> list[Any]:
        """A value of each row."""
        head, _, planes = self.bytes(name).partition(b"\n")
        values = json.loads(head)
        if not planes:
            return list(values)
        content = np.frombuffer(planes, dtype=np.uint8).reshape(-1, self.report["rows"])
        places = sum(plane.astype(int) << 8 * i for i, plane in enumerate(content))
        if isinstance(values, dict):
            return [values["prefix"] + str(n).zfill(values["width"]) for n in places]
        return [values[place] for place in places]
