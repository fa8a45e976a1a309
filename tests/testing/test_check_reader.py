"""`check_reader` passes the readers that are built in, and finds what is wrong with others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from groundfault import readers
from groundfault.readers.log import Log, Observation
from groundfault.readers.safely import json_lines
from groundfault_lab.testing import check_reader

COUNTED = {
    "promptfoo/out.json": {"scored": 276, "error": 4},
    "inspect/eee_data_cyse2_vuln_exploit_challenges.json": {"scored": 1, "missing": 3},
    "swebench_pro/gpt-4o-paper.eval_results.json": {"scored": 619},
    "taubench/gpt-4o-airline_first60.json": {"scored": 60},
}


def test_built_in_readers_keep_every_row(sample: tuple[str, list[Path]]) -> None:
    name, paths = sample
    for path in paths:
        assert check_reader(readers.get(name), path).height > 0


@pytest.mark.parametrize("place", COUNTED)
def test_rows_and_statuses_of_real_logs_are_conserved(shared: Path, place: str) -> None:
    path = shared / "real/native_logs" / place
    check_reader(readers.get(readers.sniff(path) or ""), path, COUNTED[place])


class Quiz:
    """A reader of lines such as {"quiz": 1, "right": true}."""

    def sniff(self, path: Path) -> bool:
        return path.is_file() and path.read_bytes().startswith(b'{"quiz"')

    def read(self, path: Path) -> Log:
        return Log(self.rows(path))

    def rows(self, path: Path) -> Iterator[Observation]:
        for row in json_lines(path, dict):
            right = row.get("right")
            yield Observation(
                str(row.get("quiz")), right, "scored" if right is not None else "missing"
            )


class Loser(Quiz):
    def rows(self, path: Path) -> Iterator[Observation]:
        return (row for row in super().rows(path) if row.status == "scored")


class Blamer(Quiz):
    def rows(self, path: Path) -> Iterator[Observation]:
        return (Observation(row.example_id, row.value or 0.0) for row in super().rows(path))


class Believer(Quiz):
    def sniff(self, path: Path) -> bool:
        return path.is_file()


class Fragile(Quiz):
    def rows(self, path: Path) -> Iterator[Observation]:
        return (
            Observation(str(row["quiz"]), row["right"])
            for row in map(json.loads, path.read_text().splitlines())
        )


class Forgetful(Quiz):
    count = 0

    def rows(self, path: Path) -> Iterator[Observation]:
        for row in super().rows(path):
            self.count += 1
            row.example_id = str(self.count)
            yield row


@pytest.mark.parametrize(
    ("reader", "message"),
    [
        (Loser, "but .* holds"),
        (Blamer, "but .* holds"),
        (Believer, "accepts .* no log of its format"),
        (Fragile, "scored rows without a finite value"),
        (Forgetful, "differently the second time"),
    ],
)
def test_readers_that_lose_or_invent_are_found(
    tmp_path: Path, reader: Callable[[], Quiz], message: str
) -> None:
    path = tmp_path / "quiz.jsonl"
    path.write_text(
        "".join(
            f'{{"quiz": {i}, "right": {right}}}\n' for i, right in enumerate(["1", "0", "null"])
        )
    )
    counts = {"scored": 2, "missing": 1}
    assert check_reader(Quiz(), path, counts).height == 3
    with pytest.raises(AssertionError, match=message):
        check_reader(reader(), path, counts)
