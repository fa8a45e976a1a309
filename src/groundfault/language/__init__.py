"""Language: linguistic features of texts, the 38 of the benchmark DEIM.

Each is a small function of an annotated document; a spaCy pipeline that the user names annotates
(extra ``language``). What a pipeline cannot give is "not available: needs ...", never guessed."""

from __future__ import annotations

from groundfault.base.deprecation import rename_attributes
from groundfault.language.feature import FEATURES, SETS, Feature, Need, select_features
from groundfault.language.pipeline import (
    AIDED,
    BLANK,
    DEFAULT,
    FeatureTable,
    Pipeline,
    feature_table,
    load_memory,
    load_pipeline,
    read_norms,
    save_memory,
)

__all__ = [
    "AIDED",
    "BLANK",
    "DEFAULT",
    "FEATURES",
    "SETS",
    "Feature",
    "FeatureTable",
    "Need",
    "Pipeline",
    "feature_table",
    "load_memory",
    "load_pipeline",
    "read_norms",
    "save_memory",
    "select_features",
]

__getattr__ = rename_attributes(__name__, {"chosen": "groundfault.language:select_features"})
