// Keys of the workbench. An element with data-key obeys that key: a box takes the focus, everything
// else is clicked. Elements with data-item are a list for j, k and Enter. The key "Ctrl+Enter", which
// is Cmd+Enter too, works in a box.
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
  const link = item.matches("a") ? item : item.querySelector("a[data-open], a");
  if (link) link.click();
  return Boolean(link);
}

const ALWAYS = {
  j: () => moveBy(1),
  k: () => moveBy(-1),
  Enter: openItem,
  "?": () => location.assign(document.body.dataset.help),
};

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

// A box with data-submit sends its form when a value was chosen.
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
});

// A request that got no answer: whoever sent a label must not think that it was recorded.
document.addEventListener("htmx:error", (event) => {
  if (!(event.detail.error instanceof TypeError)) return;
  const words = document.createElement("p");
  words.className = "notice bad";
  words.role = "alert";
  words.textContent =
    "The server does not answer: what was sent last may not be recorded. Start it again, and open " +
    "the address that it prints.";
  const alerts = document.getElementById("alerts");
  // the same again every second would be read out again every second
  if (!alerts.hasChildNodes()) alerts.append(words);
});

document.addEventListener("htmx:after:request", () =>
  document.getElementById("alerts").replaceChildren(),
);
