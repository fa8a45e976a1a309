// Review: an answer opens the next question, and the last one sends the decision. The item that was
// ready then takes the place at once; if nothing was stored, the old one comes back, answers and all.
"use strict";

{
  let queue = Promise.resolve();

  const findStage = () => document.getElementById("stage");
  const item = () => findStage().querySelector(".item");
  const isAnswered = (question) => question.querySelector("[aria-pressed=true]");

  // The questions that were answered, in their order, and the one that is open.
  function listAsked() {
    const asked = [];
    let name = "prompt_valid";
    while (name) {
      const question = item().querySelector(`[data-question=${name}]`);
      if (!question) break;
      asked.push(question);
      name = isAnswered(question) ? isAnswered(question).dataset.follows : "";
    }
    return asked;
  }

  const isComplete = () => listAsked().length > 0 && listAsked().every(isAnswered);

  function answer(question, button) {
    for (const each of question.querySelectorAll("button")) each.ariaPressed = String(each === button);
    show();
  }

  // Shows what is asked; only the open question has keys, and only what is asked is sent.
  function show() {
    const asked = listAsked();
    for (const question of findStage().querySelectorAll("form [data-question]")) {
      const chosen = isAnswered(question);
      const isAsked = asked.includes(question);
      question.hidden = !isAsked;
      question.querySelector("input").value = isAsked && chosen ? chosen.value : "";
      for (const button of question.querySelectorAll("button")) {
        if (isAsked && !chosen) button.dataset.key = button.dataset.letter;
        else delete button.dataset.key;
      }
    }
  }

  async function send(act) {
    const stage = findStage();
    const body = new URLSearchParams(new FormData(document.getElementById("decision")));
    const [before, ready] = [item(), document.getElementById("ready")];
    const shown = act === "decide" && ready ? ready.innerHTML : "";
    stage.ariaBusy = "true";
    if (shown) {
      before.replaceWith(ready.content.cloneNode(true));
      begin();
    }
    try {
      // kept alive: who closes the page at once has decided all the same
      const response = await ask(stage.dataset.home + act, { ...post(body, true), keepalive: true });
      const page = read(await response.text());
      if (!response.ok) throw new Error(`Not stored. ${page.body.textContent.trim()}`);
      const fresh = page.querySelector(".item");
      const hasAnswers = shown && fresh.outerHTML === shown.trim();
      if (hasAnswers) fresh.replaceWith(item());
      stage.replaceChildren(...page.body.childNodes);
      if (hasAnswers) show();
      else begin();
    } catch (error) {
      item().replaceWith(before);
      complain(error instanceof TypeError ? `Not stored. ${AWAY}` : error.message);
      const again = stage.querySelector("[data-act=decide]");
      if (again && isComplete()) {
        again.hidden = false;
        again.dataset.key = "Enter";
      }
    }
    stage.ariaBusy = "false";
  }

  function begin() {
    show();
    scrollTo(0, 0);
    item().focus({ preventScroll: true });
  }

  // one after the other: each needs the turn that the one before brought
  function act(name) {
    queue = queue.then(() => send(name));
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("#stage button");
    if (!button) return;
    const question = button.closest("[data-question]");
    const last = listAsked().filter(isAnswered).pop();
    if (question) {
      answer(question, button);
      if (isComplete()) act("decide");
    } else if (button.dataset.act === "back" && last) {
      answer(last, null);
    } else {
      act(button.dataset.act);
    }
  });

  // 1, 2 and 3 for those who prefer them
  document.addEventListener("keydown", (event) => {
    if (event.target.matches("textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    const buttons = document.querySelectorAll("#stage [data-question] [data-key]");
    if ("123".includes(event.key) && buttons[event.key - 1]) buttons[event.key - 1].click();
  });

  // what is selected in a run is its evidence, and its step the first wrong one
  document.addEventListener("selectionchange", () => {
    const selection = getSelection();
    const step = selection.anchorNode?.parentElement?.closest(".item details");
    const form = document.getElementById("decision");
    if (!step || !form?.elements.quote || selection.isCollapsed) return;
    form.elements.quote.value = selection.toString().slice(0, form.elements.quote.maxLength);
    const number = parseInt(step.querySelector("summary").textContent, 10);
    if (!Number.isNaN(number)) form.elements.step.value = number;
  });

  document.addEventListener("page", () => findStage() && show());
}
