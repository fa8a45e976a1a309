// Keys of the workbench and of the one file. An element with data-key obeys that key: a box takes the
// focus, everything else is clicked. Elements with data-item are a list for j, k and Enter. The key
// "Ctrl+Enter", which is Cmd+Enter too, works in a box.
"use strict";

const isBox = (element) => element.matches("input:not([type=checkbox]):not([type=radio]), textarea, select");

const items = () => [...document.querySelectorAll("[data-item]")].filter((item) => item.offsetParent);

function currentItem() {
  return document.activeElement ? document.activeElement.closest("[data-item]") : null;
}

function moveBy(step) {
  const list = items();
  const place = list.indexOf(currentItem());
  const next = list[place < 0 ? (step > 0 ? 0 : list.length - 1) : place + step];
  if (next) {
    next.tabIndex = -1;
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  }
}

function openItem() {
  const item = currentItem();
  // a link that has the focus itself opens as everywhere
  if (!item || document.activeElement !== item) return false;
  const link = item.matches("a") ? item : item.querySelector("a[data-open], a, summary");
  if (link) link.click();
  return Boolean(link);
}

const ALWAYS = { j: () => moveBy(1), k: () => moveBy(-1), Enter: openItem };

function press(key) {
  const target = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (!target) return key in ALWAYS && ALWAYS[key]() !== false;
  if (isBox(target)) {
    target.focus();
    if (target.select) target.select();
  } else {
    target.click();
  }
  return true;
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    if (press("Ctrl+Enter")) event.preventDefault();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (isBox(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  // Enter on a button or link stays what it is
  if (event.key === "Enter" && event.target.matches("a, button, summary")) return;
  if (press(event.key)) event.preventDefault();
});

// A key that is pressed before the next screen is there is meant for that screen.
const early = [];
let isBehind = () => false;
addEventListener("keydown", (event) => {
  const isOurs = event.key.length === 1 || event.key === "Enter";
  const isOther = event.ctrlKey || event.metaKey || event.altKey || isBox(event.target);
  if (!isOurs || isOther || !isBehind()) return;
  event.preventDefault();
  event.stopPropagation();
  early.push(event.key);
}, true);

// One of them may lead on, and the rest then wait again.
function pressEarly() {
  for (const key of early.splice(0)) document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
}

// A box with data-submit sends its form when a value was chosen.
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
});
