// Pages of the workbench. The page that the browser opens holds nothing: this script asks for what it
// shows, with a secret that stays in the storage of the tab and goes in a header. A cookie would go
// to every port of this machine.
"use strict";

const SECRET = "x-groundfault-secret";
const { home } = document.body.dataset;
const key = `groundfault ${home}`;
const channel = new BroadcastChannel(key);
let secret = sessionStorage.getItem(key);
let turn = 0; // of the page that was asked for last
let shown = ""; // the address that is on the page

const here = () => location.pathname + location.search;
const alerts = () => document.getElementById("alerts");

function complain(text) {
  const words = document.createElement("p");
  words.className = "notice bad";
  words.role = "alert";
  words.textContent = text;
  // the same again every second would be read out again every second
  if (alerts().textContent !== text) alerts().replaceChildren(words);
}

const AWAY = "The server does not answer: start it again, and open the address that it prints.";

// A request that got no answer: whoever sent a label must not think that it was recorded.
async function ask(address, settings = {}) {
  const headers = { ...settings.headers, [SECRET]: secret ?? "" };
  try {
    const answer = await fetch(address, { ...settings, headers });
    alerts().replaceChildren();
    return answer;
  } catch (error) {
    complain(`What was sent last may not be recorded. ${AWAY}`);
    throw error;
  }
}

const post = (body, part) => ({ method: "POST", body, headers: part ? { "x-groundfault-part": "1" } : {} });

// The token of the printed address gives the secret, once; a further tab asks those that have it.
async function enter() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) {
    history.replaceState(null, "", here());
    const answer = await fetch(`${home}/enter`, { method: "POST", headers: { [SECRET]: token } });
    if (answer.ok) secret = await answer.text();
  }
  secret ??= await askTabs();
  if (secret) sessionStorage.setItem(key, secret);
  channel.onmessage = ({ data }) => data === "" && secret && channel.postMessage(secret);
}

const askTabs = () => new Promise((resolve) => {
  channel.onmessage = ({ data }) => data && resolve(data);
  channel.postMessage("");
  setTimeout(resolve, 300, null);
});

function read(text) {
  return new DOMParser().parseFromString(text, "text/html");
}

// Show the page at an address. A rule that was not tried yet is counted, and recorded, only where
// somebody here asked for it: by a link or a form, not by an address.
async function open(address, settings = {}, isOurs = true) {
  const mine = (turn += 1);
  document.querySelector("main").ariaBusy = "true";
  try {
    const answer = await ask(address, settings);
    const page = read(await answer.text());
    if (mine !== turn) return; // a later one was asked for
    if (answer.status === 403) return complain(page.body.textContent);
    const trial = page.querySelector("form[data-try]");
    if (trial && isOurs && !settings.method) return await open(trial.action, post(new URLSearchParams(new FormData(trial))));
    const place = new URL(answer.url);
    place.hash = new URL(address, location).hash;
    if (isOurs && place.href !== location.href) {
      history.replaceState({ y: scrollY }, "");
      history.pushState(null, "", place);
    } else {
      history.replaceState(history.state, "", place);
    }
    shown = here(); // who goes back while rows are on their way leaves this page
    await set(page);
  } finally {
    if (mine === turn) {
      shown = here();
      document.querySelector("main").ariaBusy = null;
      pressEarly();
    }
  }
}

// what a page leaves to other scripts
let fill = async () => {};

async function set(page) {
  document.title = page.title;
  document.body.replaceChildren(...page.body.childNodes);
  document.querySelector("main").ariaBusy = "true";
  await fill();
  const target = document.getElementById(location.hash.slice(1));
  if (target) target.scrollIntoView();
  else scrollTo(0, history.state?.y ?? 0);
  document.dispatchEvent(new Event("page"));
}

// A part of a page is replaced by an answer; nothing where nothing changed.
async function replace(part, address, settings) {
  const answer = await ask(address, settings);
  if (answer.status === 204) return;
  const { body } = read(await answer.text());
  if (body.firstElementChild?.id !== part.id) return complain(body.textContent.trim());
  part.replaceWith(...body.childNodes);
  document.dispatchEvent(new Event("page"));
}

async function save(link) {
  const answer = await ask(link.href);
  if (!answer.ok) return complain(read(await answer.text()).querySelector("[role=alert]").textContent);
  const file = document.createElement("a");
  file.href = URL.createObjectURL(await answer.blob());
  file.download = link.pathname.split("/").pop();
  file.click();
  URL.revokeObjectURL(file.href);
}

// nothing more is to be said of a request that failed
const quietly = (promise) => promise.catch((error) => { if (!(error instanceof TypeError)) throw error; });

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  const isPlain = !event.button && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  if (!link || !isPlain || link.getAttribute("href").startsWith("#")) return;
  event.preventDefault();
  quietly(link.hasAttribute("download") ? save(link) : open(link.href));
});

document.addEventListener("submit", (event) => {
  event.preventDefault();
  const form = event.target;
  const fields = new URLSearchParams(new FormData(form));
  if (form.dataset.part) quietly(replace(document.querySelector(form.dataset.part), form.action, post(fields, true)));
  else if (form.method === "post") quietly(open(form.action, post(fields)));
  else quietly(open(`${form.action.split("?")[0]}?${fields}`));
});

// An element with data-poll is replaced whenever its address has something new.
let poll = 0;
document.addEventListener("page", () => {
  clearTimeout(poll);
  const part = document.querySelector("[data-poll]");
  const again = () => {
    if (!part.isConnected) return;
    poll = setTimeout(() => replace(part, part.dataset.poll, post(null, true)).then(again, again), 1000);
  };
  if (part) again();
});

history.scrollRestoration = "manual";
isBehind = () => shown !== here() || document.querySelector("main").ariaBusy === "true";
const show = () => quietly(open(location.href, {}, false));
addEventListener("popstate", () => { if (here() !== shown) show(); });
addEventListener("hashchange", () => { if (location.hash.startsWith("#token=")) enter().then(show); });
// not before the scripts that fill a page are here, however slowly they come
addEventListener("DOMContentLoaded", () => enter().then(show));
