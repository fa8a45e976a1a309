"""Ask language models and record every call.

::

    from groundfault import models

    prompts = ["2 + 2?", "3 + 3?"]
    answers = models.ask("openai/gpt-4o-mini", prompts, temperature=0, record="calls.db")
    answers[0].text

A target is named in one string:

``replay:calls.jsonl``
    Recorded answers: a record, or lines of JSON with ``prompt`` and ``response``.
``openai/<model>``
    Any server that speaks OpenAI's protocol (option ``base_url``, or OPENAI_BASE_URL).
``inspect/<provider>/<model>``
    Any model that Inspect's ``get_model`` reaches: hosted providers, vllm, ollama, ...
``hf/<folder or name>``
    A Hugging Face model on this machine, through Inspect.

Packages register more under the entry-point group ``groundfault.targets``.
"""

from __future__ import annotations

from groundfault.models.asking import ask, ask_async
from groundfault.models.question import Prompt, Question, Response
from groundfault.models.record import Call, Record
from groundfault.models.target import Target, get

__all__ = ["Call", "Prompt", "Question", "Record", "Response", "Target", "ask", "ask_async", "get"]
