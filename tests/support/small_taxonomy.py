"""A small taxonomy made by hand, and a model server that follows a script."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from groundfault_lab.taxonomy import Cluster, Matrix, Settings, Taxonomy
from groundfault_lab.taxonomy.fitting.partition import Partition
from groundfault_lab.taxonomy.fitting.stability import Stability

Rules = list[tuple[list[str], list[str]]]


def taxonomy_of(
    texts: Sequence[Sequence[str]], answers: Sequence[Sequence[str]] | None = None
) -> Taxonomy:
    """A taxonomy whose clusters are lists of texts, the first nearest the centre.

    The last cluster is unstable.
    """
    flat = [text for each in texts for text in each]
    labels = np.repeat(np.arange(len(texts)), [len(each) for each in texts])
    names = tuple(f"e{i:03d}" for i in range(len(flat)))
    table = pl.DataFrame({"question": flat})
    if answers is not None:
        table = table.with_columns(answer=pl.Series([key for each in answers for key in each]))
    away = np.concatenate([np.arange(len(each)) / 100 for each in texts])
    points = np.column_stack([10.0 * labels + away, np.zeros(len(flat))])
    centroid = np.array([[10.0 * c, 0.0] for c in range(len(texts))])
    passes = (np.arange(3)[None, :] != labels[:, None] % 3).astype(np.int64)
    matrix = Matrix(names, ("a", "b", "c"), passes, np.ones_like(passes), attributes=table)
    clusters = tuple(
        Cluster(
            number=c + 1,
            size=len(each),
            failure=(0.0, 0.5, 1.0),
            expected=(0.2, 0.5, 0.8),
            stability={"models": 0.9},
            published=c + 1 < len(texts),
            reason="It is made by hand.",
            exemplars=tuple(names[i] for i in np.flatnonzero(labels == c)[:5]),
        )
        for c, each in enumerate(texts)
    )
    partition = Partition(labels, points, points, centroid)
    return Taxonomy(Settings(), matrix, partition, clusters, {}, Stability({}, {}, {}, 0))


class Scripted:
    """A process that speaks OpenAI's protocol and answers by rules, which may change."""

    def __init__(self, script: Path) -> None:
        self.script = script
        self.follow([])
        command = [sys.executable, str(Path(__file__).parent / "model_server.py"), str(script)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}/v1"

    def follow(self, rules: Rules) -> None:
        self.script.write_text(json.dumps(rules))

    def requests(self) -> list[dict[str, Any]]:
        """Bodies of the requests so far."""
        import urllib.request

        with urllib.request.urlopen(self.url) as reply:
            return [each["body"] for each in json.loads(reply.read())["seen"]]

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=20)
