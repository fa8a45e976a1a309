"""Cases that a model writes for a doubted group, and the audit of their own that they get."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from groundfault.cli.main import cli
from groundfault.errors import InputError
from groundfault.models import Response
from groundfault.sequential import Certificate, Pool, SequentialAudit
from groundfault_lab.commands.cases import select_group, write_cases

TOPICS = ["sums", "dates"] * 30


class Writer:
    """Writes the number of its request, or nothing; keeps what it was asked."""

    name = "writer"

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.prompts: list[str] = []

    async def answer(self, question: object) -> Response:
        turns = question.messages  # type: ignore[attr-defined]
        self.asked.append(turns)
        self.prompts.append("\n".join(turn["content"] for turn in turns))
        number = len(self.prompts)
        return Response("\n" if number % 3 == 0 else f'"What is {number} + 1?"\nAnd more.')


@pytest.fixture
def audited(tmp_path: Path) -> tuple[Path, Path]:
    """Return the certificate of an audit that claimed sums, and its pool."""
    table = pl.DataFrame(
        {
            "id": range(60),
            "prompt": [f"{topic} question {i}" for i, topic in enumerate(TOPICS)],
            "topic": TOPICS,
            "score": [float(topic == "dates") for topic in TOPICS],
        }
    )
    table.write_csv(tmp_path / "pool.csv")
    pool = Pool.from_table(table, id="id", groups=["topic"], scores="score")
    audit = SequentialAudit(pool, threshold=0.8, seed=0)
    audit.run(lambda query: float(query.case["topic"] == "dates"))
    audit.certificate().to_json(tmp_path / "certificate.json")
    return tmp_path / "certificate.json", tmp_path / "pool.csv"


def test_each_request_shows_cases_of_the_group_alone(audited: tuple[Path, Path]) -> None:
    certificate, table = Certificate.load(audited[0]), pl.read_csv(audited[1])
    texts = select_group(certificate, "topic=sums", table["id"].cast(pl.String), table["prompt"])
    assert len(texts) == 30
    writer = Writer()
    written = write_cases(texts, writer, count=6, seed=1)
    # a reply without text makes no case, and the first line is the case
    assert written == ["What is 1 + 1?", "What is 2 + 1?", "What is 4 + 1?", "What is 5 + 1?"]
    assert all(
        prompt.count("sums question") == 5 and "dates" not in prompt for prompt in writer.prompts
    )
    assert len(set(writer.prompts)) == 6
    with pytest.raises(InputError, match="no text of case"):
        select_group(
            certificate, "topic=sums", table["id"][:5].cast(pl.String), table["prompt"][:5]
        )


def test_written_cases_are_audited_apart(audited: tuple[Path, Path], tmp_path: Path) -> None:
    certificate, pool = audited
    before, claimed = certificate.read_bytes(), Certificate.load(certificate).rounds[-1].group
    assert claimed in ("topic=sums", "all cases")
    said, out = tmp_path / "said.jsonl", tmp_path / "cases.csv"
    table, writer = pl.read_csv(pool), Writer()
    texts = select_group(
        Certificate.load(certificate), "topic=sums", table["id"].cast(pl.String), table["prompt"]
    )
    write_cases(texts, writer, count=12)
    lines = [
        {"messages": turns, "repeat": n, "response": f"What is {n} + 1?"}
        for n, turns in enumerate(writer.asked)
    ]
    said.write_text("\n".join(map(json.dumps, lines)))
    arguments = ["lab", "cases", certificate, pool, "--model", f"replay:{said}", "--out", out]
    arguments += ["--count", 12, "--group", "topic=sums"]
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.exception
    assert "wrote 12 cases (12 distinct) for topic=sums" in result.output
    own = Pool.from_table(out, id="id", groups=["group"], generated=True)
    audit = SequentialAudit(own, threshold=0.8, seed=0)
    assert "newly generated cases" in audit.null
    assert audit.run(lambda _: 0.0) == "failure mode found"
    assert own.case(0)["writer"].startswith("replay")
    # what was audited before stays as it was
    assert certificate.read_bytes() == before
