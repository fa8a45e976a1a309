"""Language: linguistic features of texts, the 38 of the benchmark DEIM.

Each is a small function of an annotated document; a spaCy pipeline that the user names annotates
(extra ``language``). What a pipeline cannot give is "not available: needs ...", never guessed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groundfault.base.registry import open_front_door

if TYPE_CHECKING:
    from groundfault_lab.language.feature import (
        FEATURES as FEATURES,
        SETS as SETS,
        Feature as Feature,
        Need as Need,
        select_features as select_features,
    )
    from groundfault_lab.language.pipeline import (
        AIDED as AIDED,
        BLANK as BLANK,
        DEFAULT as DEFAULT,
        FeatureTable as FeatureTable,
        Pipeline as Pipeline,
        feature_table as feature_table,
        load_memory as load_memory,
        load_pipeline as load_pipeline,
        read_norms as read_norms,
        save_memory as save_memory,
    )

__getattr__, __dir__, __all__ = open_front_door(__name__)
