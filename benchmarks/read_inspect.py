"""Reading Inspect logs beside parsing their JSON, and beside inspect_ai's own ``samples_df``.

    python benchmarks/read_inspect.py [--logs 100] [--samples 1000] [--own 2]

The logs are written by inspect_ai: one real run of a scripted model over ``--samples`` questions (a
system message, a prompt template, two model calls, two scorers, all events), kept as .eval (zstd)
and as .json, and linked until there are ``--logs``, half of each kind. Full parsing is the fastest
maintained parser at hand: orjson, else msgspec, into plain dictionaries, of bytes that are
decompressed by the same code as ours. Both are timed in the same run, with the files in memory."""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from groundfault.readers.inspect import Inspect
from groundfault.readers.safely import Archive

try:
    import orjson

    PARSER, parse = "orjson", orjson.loads
except ImportError:
    PARSER, parse = "msgspec", msgspec.json.Decoder().decode

WORDS = (
    "alpha beta gamma delta question answer model number total price train river because "
    "therefore until"
).split()


def text(rng: random.Random, words: int) -> str:
    """Words enough to look like one."""
    return " ".join(rng.choices(WORDS, k=words))


def one_run(folder: Path, samples: int) -> Path:
    """A real run of Inspect with a scripted model."""
    from inspect_ai import Task, eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import includes, match
    from inspect_ai.solver import generate, prompt_template, self_critique, system_message

    rng = random.Random(0)

    def answer(*_: object) -> ModelOutput:
        output = ModelOutput.from_content("mockllm/model", f"{text(rng, 200)} {rng.randint(0, 2)}")
        output.usage = ModelUsage(input_tokens=400, output_tokens=250, total_tokens=650)
        return output

    dataset = [
        Sample(
            id=f"q{i}",
            input=text(rng, 100),
            target=str(rng.randint(0, 2)),
            metadata={
                "subject": rng.choice(WORDS),
                "level": rng.randint(1, 5),
                "source": text(rng, 5),
            },
        )
        for i in range(samples)
    ]
    solver = [
        system_message(text(rng, 60)),
        prompt_template("Think. {prompt}"),
        generate(),
        self_critique(),
    ]
    model = get_model("mockllm/model", custom_outputs=answer)
    task = Task(
        dataset=MemoryDataset(dataset),
        solver=solver,
        scorer=[match(numeric=True), includes()],
        name="bench",
    )
    log = eval(task, model=model, log_dir=str(folder), display="none", log_level="error")[0]
    return Path(log.location.removeprefix("file://"))


def write_logs(folder: Path, logs: int, samples: int) -> list[Path]:
    """The files to read, half of each kind."""
    from inspect_ai.log import read_eval_log, write_eval_log

    first = one_run(folder / "run", samples)
    as_json = folder / "run.json"
    write_eval_log(read_eval_log(str(first)), str(as_json), format="json")
    paths: list[Path] = []
    for i in range(logs):
        kind = first if i % 2 == 0 else as_json
        paths.append(folder / f"log{i}{kind.suffix}")
        paths[-1].hardlink_to(kind)  # a hundred copies would fill a small disk
    return paths


def read(path: Path) -> int:
    """Ours: the whole log as tables."""
    return sum(table.height for table, _ in Inspect().read(path).tables())


def parse_log(path: Path) -> int:
    """The same bytes, parsed and thrown away."""
    if path.suffix == ".json":
        return len(parse(path.read_bytes()))
    archive = Archive(path)
    return sum(
        bool(parse(archive.read(name))) for name in archive.names() if name.startswith("samples/")
    )


def measure(work: Callable[[Path], int], paths: list[Path]) -> float:
    """Seconds of processor for all the paths, which other work on the machine does not lengthen
    much.
    """
    start = time.process_time()
    for path in paths:
        work(path)
    return time.process_time() - start


def main() -> None:
    """Print seconds and the ratio."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--logs", type=int, default=100)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--own", type=int, default=2, help="logs that samples_df reads (0: none)")
    parser.add_argument("--json", action="store_true", help="end with the ratios as JSON")
    options = parser.parse_args()
    ratios = {}
    with tempfile.TemporaryDirectory() as name:
        paths = write_logs(Path(name), options.logs, options.samples)
        size = sum(p.stat().st_size for p in paths) / 1e6
        print(
            f"{options.logs} logs x {options.samples} samples, {size:,.0f} MB on disk; "
            f"{read(paths[0]):,} rows a log"
        )
        for kind in (".eval", ".json"):
            of_kind = [p for p in paths if p.suffix == kind]
            if of_kind:
                ours, bare = measure(read, of_kind), measure(parse_log, of_kind)
                ratios[f"{kind}, {PARSER}"] = bare / ours
                print(f"{kind}: ours {ours:.2f} s, {PARSER} {bare:.2f} s, ratio {ours / bare:.2f}")
        rounds = [
            (measure(read, paths), measure(parse_log, paths))
            for _ in range(1 if options.logs > 20 else 3)
        ]
        ours, bare = (statistics.median(times) for times in zip(*rounds, strict=True))
        print(f"all: ours {ours:.2f} s, {PARSER} {bare:.2f} s, ratio {ours / bare:.2f}")
        if options.own:
            from inspect_ai.analysis import samples_df

            own = measure(
                lambda p: len(samples_df(str(p), full=True, quiet=True)), paths[: options.own]
            )
            ours = measure(read, paths[: options.own])
            print(
                f"{options.own} logs: samples_df {own:.2f} s, ours {ours:.2f} s, {own / ours:.0f} "
                "times as long"
            )
        if options.json:
            print(json.dumps(ratios))


if __name__ == "__main__":
    main()
