"""Label Studio: items as its tasks, its labelling configuration, and its export read back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from groundfault.errors import InputError
from groundfault.review.item import Item

CONFIG = """<View>
  <Header value="Task $task"/>
  <Text name="question" value="$question"/>
  <Header value="Prompt"/>
  <Text name="prompt" value="$prompt"/>
  <Header value="Response (copy $copy)"/>
  <Text name="response" value="$response"/>
  <Header value="Expected answer"/>
  <Text name="answer" value="$answer"/>
  <Header value="Answer as it was read"/>
  <Text name="extracted" value="$extracted"/>
  <Header value="Does the prompt still ask the task?"/>
  <Choices name="prompt_valid" toName="prompt" choice="single-radio" required="true">
    <Choice value="yes"/><Choice value="no"/><Choice value="unsure"/>
  </Choices>
  <Header value="Is what was read the response's final answer?"/>
  <Choices name="extraction_valid" toName="extracted" choice="single-radio">
    <Choice value="yes"/><Choice value="no"/><Choice value="unsure"/>
  </Choices>
  <Choices name="artefact" toName="extracted" choice="single-radio"
           visibleWhen="choice-selected" whenTagName="extraction_valid" whenChoiceValue="no">
    <Choice value="extraction"/><Choice value="format"/>
  </Choices>
  <Header value="Is the response's final answer wrong?"/>
  <Choices name="model_wrong" toName="response" choice="single-radio">
    <Choice value="yes"/><Choice value="no"/><Choice value="unsure"/>
  </Choices>
  <TextArea name="note" toName="response" placeholder="note" maxSubmissions="1"/>
</View>
"""


def make_task(item: Item) -> dict[str, Any]:
    """An item as a task: what it shows, and its id."""
    return {"data": {"item": item.id, **item.visible_texts}}


def read_rows(tasks: Any, where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Rows of a sheet from a JSON export with annotations; skipped ones are passed over.

    Raises
    ------
    InputError
        If it is laid out otherwise, or a task has several annotations.
    """
    for number, each in enumerate(tasks, start=1):
        here = f"{where}, task {number}"
        try:
            annotations = [a for a in each.get("annotations") or [] if not a.get("was_cancelled")]
            row = dict(each["data"])
            if len(annotations) > 1:
                raise InputError(
                    f"{here} has {len(annotations)} annotations; a sheet is one reviewer's, so "
                    "export theirs alone"
                )
            for result in annotations[0]["result"] if annotations else []:
                value = result["value"]
                row[result["from_name"]] = "\n".join(
                    value.get("choices") or value.get("text") or []
                )
        except (AttributeError, KeyError, TypeError):
            raise InputError(f"{here} is not laid out as Label Studio's JSON export") from None
        yield here, row
