// Codes: x chooses the note that one walked to. A note that is dropped on a code moves there, and a
// code that is dropped on another is joined to it; the forms of the page do the same by keys.
"use strict";

{
  let dragged = null;
  let change = null;
  const groupOf = (element) => element.closest(".code[data-code]");

  document.addEventListener("keydown", (event) => {
    if (event.key !== "x" || event.ctrlKey || event.metaKey || event.altKey || isBox(event.target)) return;
    const item = currentItem();
    if (item && groupOf(item)) item.querySelector("input").click();
  });

  document.addEventListener("dragstart", ({ target }) => {
    dragged = target.nodeType === Node.ELEMENT_NODE && groupOf(target) ? target : null;
  });

  document.addEventListener("dragover", (event) => {
    if (dragged && groupOf(event.target)) event.preventDefault();
  });

  document.addEventListener("drop", (event) => {
    const target = groupOf(event.target);
    if (!dragged || !target) return;
    event.preventDefault();
    const [from, into] = [groupOf(dragged).dataset.code, target.dataset.code];
    const form = document.getElementById(dragged.matches("li") ? "move" : "rename");
    const box = dragged.querySelector("input[name=runs]");
    dragged = null;
    if (from === into || !form) return;
    // who drags a note that is not chosen means this one alone
    if (box && !box.checked) for (const each of form.elements) if (each.name === "runs") each.checked = each === box;
    if (!box) form.elements.code.value = from;
    form.elements.into.value = into;
    change = form;
  });

  // not before: the page is replaced by it, which must not happen while the drag goes on
  document.addEventListener("dragend", () => {
    if (change) change.requestSubmit();
    change = null;
  });
}
