"""Pipelines annotate texts, each text once, and measure features of the documents."""

from __future__ import annotations

import hashlib
import io
import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault.base.files import write_bytes
from groundfault.base.reading import MAX_ROWS, read_bytes, read_text
from groundfault.errors import InputError, MissingExtraError, first_line, require_extra
from groundfault.readers.table_size import measure_table
from groundfault_lab.language import words
from groundfault_lab.language.feature import FEATURES, Feature, Need
from groundfault_lab.language.plain import PlainLanguage
from groundfault_lab.language.surface import zipf

DEFAULT = "en_core_web_sm"
BLANK = "blank"
LONGEST = 100_000
"""Characters of a text that are read; parsers need memory in proportion."""

# documents that spaCy's pipe annotates at once
_BATCH = 64
# well below _KEPT: what was just read must not be dropped before its row is made
_CHUNK = 5_000
# texts in memory; the oldest are dropped first
_KEPT = 50_000
AIDED = frozenset({Need.CORPUS, Need.NORMS})
"""What features need that depend on more than the text."""
_ANNOTATED = {Need.TAGS, Need.PARSE, Need.ENTITIES, Need.CLASSIFIER}
_SENTENCE = re.compile(r"[^.!?\n]*\w[^.!?\n]*")
# a tokeniser's time grows with the square of a run without spaces
_UNBROKEN = re.compile(r"\S{250}(?=\S)")
_PACKAGE = re.compile(r"[a-z]{2,3}_[a-z0-9_]+")
_ASSIGNED = {
    Need.TAGS: {"token.tag"},
    Need.PARSE: {"token.tag", "token.dep", "token.head"},
    Need.ENTITIES: {"doc.ents"},
    Need.CLASSIFIER: {"doc.cats"},
}

Report = Callable[[int], object]


@dataclass(eq=False)
class Pipeline:
    """A loaded pipeline, of spaCy or plain. Make one with `load_pipeline`.

    Attributes
    ----------
    name : str
        As `load_pipeline` received it.
    nlp : spacy.language.Language or PlainLanguage
    memory : dict
        Features of the texts that were read before, by the hash of the text.
    """

    name: str
    nlp: Any = field(repr=False)
    memory: dict[str, dict[str, float]] = field(default_factory=dict, repr=False)

    @property
    def key(self) -> str:
        """Return a hash of all that the numbers depend on besides the text."""
        described = map(self.nlp.meta.get, ("lang", "name", "version", "performance"))
        parts = (*described, self.nlp.pipe_names)
        return hashlib.sha256(repr((self.name, parts, _own_version())).encode()).hexdigest()

    def lacking(self, feature: Feature, norms: Mapping[str, Any] | None = None) -> str:
        """Return why a feature is not available here; empty where it is."""
        if feature.need is Need.NORMS and feature.name not in (norms or {}):
            return f"not available: needs {feature.need}, words with their {feature.name}"
        needs = _ASSIGNED.get(feature.need, set())
        metas = {name: self.nlp.get_pipe_meta(name).assigns for name in self.nlp.pipe_names}
        if not needs <= {what for assigns in metas.values() for what in assigns}:
            return f"not available: needs {feature.need}, which {self.name} is not"
        namers = [self.nlp.get_pipe(name) for name, each in metas.items() if "doc.ents" in each]
        known = {label for namer in namers for label in getattr(namer, "labels", ())}
        if feature.labels and not feature.labels & known:
            labels = " or ".join(sorted(feature.labels))
            return f"not available: needs a pipeline that names entities as {labels}"
        return ""

    def measure(
        self,
        texts: Sequence[str],
        features: Sequence[Feature],
        *,
        corpus: Mapping[str, int] | None = None,
        norms: Mapping[str, Mapping[str, float]] | None = None,
        jobs: int = 1,
        progress: Report | None = None,
    ) -> NDArray[np.float64]:
        """Return features of texts.

        Parameters
        ----------
        texts : sequence of str, length n
            Each is annotated once, however often it comes.
        features : sequence of Feature, length F
        corpus : mapping of str to int, optional
            How often each word comes, for the frequency of words; left out, it is counted in
            ``texts``.
        norms : mapping of str to mapping, optional
            Of arousal or dominance: words and their norms.
        jobs : int
            Processes that annotate; the numbers are the same.
        progress : callable, optional
            Called with how many more texts are done.

        Returns
        -------
        float64 array, shape (n, F)
            NaN where a text has no value, and throughout for a feature that is not available; see
            `lacking`.

        Warns
        -----
        UserWarning
            Of texts that are too long to be read to their end, when they are read for the first
            time.
        """
        there = [f for f in features if not self.lacking(f, norms)]
        frequent: dict[str, float] = {}
        if any(f.need is Need.CORPUS for f in there):
            frequent = zipf(count_words(texts) if corpus is None else corpus)
        # each once, in the order of first occurrence
        different = list(dict.fromkeys(texts))
        rows: dict[str, dict[str, float]] = {}
        annotate = any(f.need in _ANNOTATED for f in there)
        for start in range(0, len(different), _CHUNK):
            part = different[start : start + _CHUNK]
            self._remember(part, annotate, jobs, progress or (lambda _: None))
            rows |= {
                text: self.memory[_hash(text)] | self._measure_aided(text, there, frequent, norms)
                for text in part
            }
        values = [
            [rows[text].get(f.name, math.nan) if f in there else math.nan for f in features]
            for text in texts
        ]
        return np.asarray(values, dtype=np.float64).reshape(len(texts), len(features))

    def measure_column(
        self, texts: pl.Series, features: Sequence[Feature], **options: Any
    ) -> NDArray[np.float64]:
        """Return features of a column of texts, with the options of `measure`.

        A missing text is not measured as an empty one, which has values.
        """
        values = np.full((len(texts), len(features)), math.nan)
        present = texts.drop_nulls().to_list()
        values[texts.is_not_null().to_numpy()] = self.measure(present, features, **options)
        return values

    def _measure_aided(
        self, text: str, features: Sequence[Feature], frequent: Any, norms: Mapping[str, Any] | None
    ) -> dict[str, float]:
        """Return the features that depend on more than the text."""
        needs = [f for f in features if f.need in AIDED]
        # tokens suffice here, and are cheap
        doc = self.nlp.make_doc(_read(text)) if needs else None
        return {
            f.name: f.measure(doc, frequent if f.need is Need.CORPUS else (norms or {})[f.name])
            for f in needs
        }

    def _remember(self, texts: Sequence[str], annotate: bool, jobs: int, report: Report) -> None:
        """Read new texts, and keep all their features, or those that need no annotation."""
        entries = {Need.WORDS, *_ANNOTATED} if annotate else {Need.WORDS}
        features = [f for f in FEATURES.values() if f.need in entries and not self.lacking(f)]
        names = {f.name for f in features}
        new = [text for text in texts if not names <= self.memory.get(_hash(text), {}).keys()]
        report(len(texts) - len(new))
        if long := sum(len(text) > LONGEST for text in new):
            texts_are = "1 text is" if long == 1 else f"{long:,} texts are"
            message = f"{texts_are} read to the first {LONGEST:,} characters only"
            warnings.warn(message, stacklevel=3)
        parts, options = map(_read, new), {"batch_size": _BATCH, "n_process": jobs}
        docs = self.nlp.pipe(parts, **options) if annotate else map(self.nlp.make_doc, parts)
        with warnings.catch_warnings():
            # of components that find nothing to do in an empty text
            warnings.simplefilter("ignore")
            for text, doc in zip(new, docs, strict=True):
                self.memory[_hash(text)] = {f.name: f.measure(doc) for f in features}
                report(1)
        # dicts keep the order of insertion
        for old in list(self.memory)[: max(0, len(self.memory) - _KEPT)]:
            del self.memory[old]


@lru_cache(maxsize=2)
def load_pipeline(name: str = DEFAULT) -> Pipeline:
    """Load a spaCy pipeline.

    Parameters
    ----------
    name : str
        An installed one, a directory that holds one, or ``blank``: words and marks alone, without
        spaCy, for the features that need nothing more.

    Raises
    ------
    MissingExtraError
        If spaCy, or the pipeline, is not installed.
    InputError
        If the name is none, or the pipeline cannot be loaded.
    """
    if name == BLANK:
        return Pipeline(name, PlainLanguage())
    with require_extra(
        "this pipeline needs spaCy: pip install 'groundfault-lab[language]', or name the pipeline "
        "blank for the features that need none"
    ):
        import spacy
    if not Path(name).is_dir() and not _PACKAGE.fullmatch(name):
        raise InputError(
            f"{name!r} is no spaCy pipeline: name an installed one, such as {DEFAULT}, or its "
            "directory"
        )
    try:
        return Pipeline(name, spacy.load(name))
    except OSError as error:
        if Path(name).is_dir():
            raise InputError(f"the pipeline {name} cannot be loaded: {first_line(error)}") from None
        raise MissingExtraError(
            f"the spaCy pipeline {name} is not installed: python -m spacy download {name} (or name "
            "a directory, or 'blank' for the features that need no parser)"
        ) from None
    # a pipeline's own code runs while it is loaded and may raise anything
    except Exception as error:
        raise InputError(f"the pipeline {name} cannot be loaded: {first_line(error)}") from None


def require_texts(column: pl.Series) -> None:
    """Raise `InputError` unless a column holds texts."""
    if column.dtype not in (pl.String, pl.Null):
        raise InputError(f"column {column.name!r} holds {column.dtype}, not text")


def is_package(name: str) -> bool:
    """Return whether a pipeline's name is one of a package, or of none, never of a folder."""
    return name == BLANK or (_PACKAGE.fullmatch(name) is not None and not Path(name).exists())


def count_words(texts: Iterable[str]) -> Counter[str]:
    """Return how often each word comes in texts, in lower case."""
    return Counter(word for text in texts for word in words.find_words(_read(text)))


def read_norms(path: str | Path) -> dict[str, dict[str, float]]:
    """Read word norms from a CSV file with ``word``, and ``arousal`` or ``dominance`` or both.

    Raises
    ------
    InputError
        If the file cannot be read, or lacks the columns.
    """
    try:
        # as text, since polars would unpack bytes to any size
        table = pl.read_csv(io.StringIO(read_text(path)), infer_schema_length=None)
    except (OSError, UnicodeDecodeError, pl.exceptions.PolarsError) as error:
        raise InputError(f"cannot read the word norms {path}: {first_line(error)}") from None
    schema = table.schema
    norms = [n for n in ("arousal", "dominance") if n in schema and schema[n].is_numeric()]
    if "word" not in table.columns or not norms:
        raise InputError(
            f"{path}: word norms need a column 'word', and numbers in 'arousal' or 'dominance'"
        )
    # numbers such as "24" may have been read as integers
    keys = table["word"].cast(pl.String).str.to_lowercase().to_list()
    pairs = {name: zip(keys, table[name].to_list(), strict=True) for name in norms}
    return {name: {w: v for w, v in each if w and v is not None} for name, each in pairs.items()}


def _read(text: str) -> str:
    """Return the part of a text that is read.

    Its beginning, in valid Unicode, with endless words broken.

    The time that a tokeniser takes for a run of marks grows with the square of its length.
    """
    return _UNBROKEN.sub(r"\g<0> ", text[:LONGEST].encode("utf-8", "replace").decode("utf-8"))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@cache
def _own_version() -> str:
    """Return a hash of this room: of what the features do, and their word lists."""
    digest = hashlib.sha256()
    # any change of this room makes a cache stale, on purpose
    for path in sorted([*words.HERE.glob("*.txt"), *words.HERE.parent.glob("*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class FeatureTable:
    """Features of a column of texts.

    Attributes
    ----------
    frame : polars.DataFrame
        One column a feature that is available, named after the column of texts; NULL where it has
        no value.
    lacking : dict of str to str
        Features that are not available, each with the reason.
    texts, sentences : int
        Different texts, and about how many sentences they have.
    """

    frame: pl.DataFrame
    lacking: dict[str, str]
    texts: int
    sentences: int


def feature_table(
    texts: pl.Series,
    features: Sequence[Feature],
    pipeline: Pipeline,
    *,
    norms: Mapping[str, Mapping[str, float]] | None = None,
    jobs: int = 1,
    progress: Callable[[int], object] | None = None,
) -> FeatureTable:
    """Measure features of a column of texts.

    Parameters
    ----------
    texts : polars.Series
        Strings; a missing one has no features.
    features : sequence of Feature
    pipeline : Pipeline
    norms : mapping, optional
        See `groundfault_lab.language.read_norms`.
    jobs : int
        Processes that annotate.
    progress : callable, optional
        Called with how many more different texts are done.

    Raises
    ------
    InputError
        If the column holds no texts.
    """
    require_texts(texts)
    lacking = {f.name: reason for f in features if (reason := pipeline.lacking(f, norms))}
    there = [f for f in features if f.name not in lacking]
    values = pipeline.measure_column(texts, there, norms=norms, jobs=jobs, progress=progress)
    measured = (
        pl.Series(f"{texts.name}_{f.name}", values[:, j]).fill_nan(None)
        for j, f in enumerate(there)
    )
    # counts are written as integers, so that a CSV file has 2 and not 2.0
    columns = [c.cast(pl.Int64) if (c.drop_nulls() % 1 == 0).all() else c for c in measured]
    different = texts.drop_nulls().unique().to_list()
    sentences = sum(len(_SENTENCE.findall(text)) for text in different)
    return FeatureTable(pl.DataFrame(columns), lacking, len(different), sentences)


def load_memory(pipeline: Pipeline, path: str | Path) -> int:
    """Let a pipeline remember what `save_memory` wrote of it, and say how many texts those are.

    What another pipeline wrote, or another version of the features, is passed over; so is a file
    that is not there.

    Raises
    ------
    InputError
        If the file is something else.
    """
    if not Path(path).exists():
        return 0
    try:
        measure_table(Path(path))
        table = pl.read_parquet(io.BytesIO(read_bytes(path, MAX_ROWS)))
        rows = table.filter(pl.col("pipeline") == pipeline.key).drop("pipeline")
        texts = rows.drop_in_place("text").cast(pl.String).to_list()
        memory = [
            {name: float(value) for name, value in row.items() if value is not None}
            for row in rows.to_dicts()
        ]
    except (OSError, pl.exceptions.PolarsError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} is no cache of features ({first_line(error)}); name another file"
        ) from None
    pipeline.memory.update(zip(texts, memory, strict=True))
    return len(texts)


def save_memory(pipeline: Pipeline, path: str | Path) -> None:
    """Write a pipeline's memory to a Parquet file: hashes of texts and features, never a text."""
    rows = [
        {"pipeline": pipeline.key, "text": text, **values}
        for text, values in pipeline.memory.items()
    ]
    # in memory first: the file is replaced at once or not at all
    data = io.BytesIO()
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(data)
    write_bytes(Path(path), data.getvalue())
