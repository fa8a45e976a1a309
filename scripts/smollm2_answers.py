"""Put prompts to SmolLM2-135M-Instruct: what tests/fixtures/smollm2/answers.parquet was made by.

    python scripts/smollm2_answers.py MODEL PROMPTS.parquet OUT.jsonl SYSTEM [TEMPERATURE]

MODEL is a Hugging Face folder of the model; PROMPTS has the columns id and prompt. Greedy unless a
temperature is named, at most 14 tokens, up to the first new line. It goes on where it stopped.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import polars as pl

BATCH, TOKENS = 24, 14


def main(folder: str, prompts: str, out: str, system: str, temperature: str = "0") -> None:
    """Answer the prompts that have no answer yet, those of similar length together."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    lines = Path(out).read_text().splitlines() if Path(out).exists() else []
    done = {json.loads(line)["id"] for line in lines}
    rows = pl.read_parquet(prompts).filter(~pl.col("id").is_in(list(done)))
    encoded = {
        row["id"]: tokenizer.apply_chat_template(
            [
                {"role": "system", "content": system},
                {"role": "user", "content": row["prompt"]},
            ],
            add_generation_prompt=True,
            return_dict=False,
        )
        for row in rows.iter_rows(named=True)
    }
    order = sorted(encoded, key=lambda name: len(encoded[name]))
    with torch.inference_mode(), Path(out).open("a") as file:
        for start in range(0, len(order), BATCH):
            names = order[start : start + BATCH]
            said = answer(model, tokenizer, [encoded[n] for n in names], float(temperature), start)
            for name, text in zip(names, said, strict=True):
                file.write(json.dumps({"id": name, "answer": text}) + "\n")
            file.flush()


def answer(
    model: Any, tokenizer: Any, prompts: list[list[int]], temperature: float, seed: int
) -> list[str]:
    """Return the first line of each answer."""
    import torch

    width, count = max(map(len, prompts)), len(prompts)
    ids = torch.tensor([[0] * (width - len(one)) + one for one in prompts])
    mask = torch.tensor([[0] * (width - len(one)) + [1] * len(one) for one in prompts])
    position = (mask.cumsum(1) - 1).clamp(min=0)
    ends = {tokenizer(text)["input_ids"][0] for text in ("\n", "\n\n")} | {tokenizer.eos_token_id}
    said: list[list[int]] = [[] for _ in prompts]
    done, cache = [False] * count, None
    random = torch.Generator().manual_seed(seed)
    for _ in range(TOKENS):
        result = model(
            ids, attention_mask=mask, position_ids=position, past_key_values=cache, use_cache=True
        )
        cache, logits = result.past_key_values, result.logits[:, -1]
        chosen = logits.argmax(-1)
        if temperature:
            chances = (logits / temperature).softmax(-1)
            chosen = torch.multinomial(chances, 1, generator=random)[:, 0]
        for i, token in enumerate(chosen.tolist()):
            done[i] = done[i] or token in ends
            if not done[i]:
                said[i].append(token)
        if all(done):
            break
        ids = chosen[:, None]
        mask = torch.cat([mask, torch.ones(count, 1, dtype=torch.long)], 1)
        position = mask.sum(1, keepdim=True) - 1
    return [tokenizer.decode(one, skip_special_tokens=True).split("\n")[0].strip() for one in said]


if __name__ == "__main__":
    main(*sys.argv[1:])
