"""Replicates: the same work many times, in parallel and resumable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from groundfault.base.files import write_text
from groundfault.base.progress import Progress, listener
from groundfault.base.reading import MAX_ROWS, read_text

_CHUNKS = 8  # so an interruption loses an eighth of the work at most


class Replicates:
    """Runs replicates by number.

    Each draws from a generator of its own, so that results depend on neither order nor processes.

    Parameters
    ----------
    jobs : int
        Processes; -1 is all cores. Another backend is chosen with ``joblib.parallel_config``.
    progress : callable, optional
        Called with a message at each step.
    store : path, optional
        Directory in which finished replicates are kept, and looked for before any is run.
    key : str
        What the replicates are of: others are not taken for them.
    """

    def __init__(
        self,
        jobs: int = 1,
        progress: Progress | None = None,
        store: str | Path | None = None,
        key: str = "",
    ) -> None:
        self.jobs, self.progress, self.key = jobs, listener(progress), key
        self.store = None if store is None else Path(store)

    def run(self, purpose: str, work: Callable[[int], Any], count: int) -> list[Any]:
        """Return what ``work`` gives for each number from 0 to ``count - 1``, in that order.

        Parameters
        ----------
        purpose : str
            In a few words, different for different work.
        work : callable
            Takes the number; gives what JSON can hold. Must be picklable.
        count : int
        """
        from joblib import effective_n_jobs

        results = self._load(purpose)
        todo = [i for i in range(count) if i not in results]
        # by the chunk, so that an interruption loses one of them and no more; each keeps all
        # processes busy to its end
        processes = int(effective_n_jobs(self.jobs))
        size = -(-len(todo) // (_CHUNKS * processes)) * processes
        for start in range(0, len(todo), size or 1):
            self.progress(f"{purpose}: {len(results)} of {count}")
            part = todo[start : start + size]
            results |= dict(zip(part, self._parallel(work, part), strict=True))
            self._save(purpose, results)
        return [results[i] for i in range(count)]

    def _parallel(self, work: Callable[[int], Any], numbers: Sequence[int]) -> list[Any]:
        if self.jobs == 1 or len(numbers) == 1:
            from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

            # as in processes: sums in the same order, and none waits for the other core
            with threadpool_limits(1):
                return [work(i) for i in numbers]
        from joblib import Parallel, delayed

        return list(Parallel(n_jobs=self.jobs)(delayed(work)(i) for i in numbers))

    def _path(self, purpose: str) -> Path | None:
        if self.store is None:
            return None
        return self.store / f"{hashlib.sha256(purpose.encode()).hexdigest()[:16]}.json"

    def _load(self, purpose: str) -> dict[int, Any]:
        path = self._path(purpose)
        if path is None or not path.exists():
            return {}
        try:
            content = json.loads(read_text(path, MAX_ROWS))
            if content["key"] != self.key or content["purpose"] != purpose:
                return {}
            return {int(number): value for number, value in content["done"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}  # a file that is none of ours is no result: run again

    def _save(self, purpose: str, results: dict[int, Any]) -> None:
        path = self._path(purpose)
        if path is not None:
            write_text(path, json.dumps({"key": self.key, "purpose": purpose, "done": results}))
