// Fetches this page again every two seconds and replaces the parts that changed. The page works without this script.
"use strict";
const INTERVAL = 2000;
const pause = document.getElementById("pause");
const status = document.getElementById("status");
const form = document.querySelector("form");
const shown = new Map(); // id of a part -> the HTML that it was last filled with
let timer, request, isPaused = false;

function report(text, isBad) {
  if (status.textContent !== text) status.textContent = text; // A screen reader announces each change.
  status.className = isBad ? "bad" : "";
}

function fill(old, fresh) {
  if (shown.get(old.id) === fresh.innerHTML) return;
  const selection = getSelection();
  if (!selection.isCollapsed && old.contains(selection.anchorNode)) return; // Somebody is copying from it.
  shown.set(old.id, fresh.innerHTML);
  const focus = old.contains(document.activeElement) ? document.activeElement : null;
  const key = focus && (focus.id || focus.parentElement.id || focus.getAttribute("href"));
  const scrolled = new Map();
  for (const details of old.querySelectorAll("details")) {
    const next = fresh.querySelector("#" + CSS.escape(details.id));
    if (next && details.dataset.touched) { next.open = details.open; next.dataset.touched = "1"; }
  }
  old.replaceChildren(...fresh.childNodes);
  if (key) {
    const again = Array.from(old.querySelectorAll("a, summary, pre")).find(
      each => each.id === key || each.parentElement.id === key || each.getAttribute("href") === key);
    if (again) again.focus({ preventScroll: true });
  }
}

async function update() {
  clearTimeout(timer);
  if (request) request.abort();
  const mine = request = new AbortController();
  try {
    const answer = await fetch(location.href, { signal: mine.signal, credentials: "omit" });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of document.querySelectorAll("[data-live]")) {
      const next = fresh.getElementById(part.id);
      if (next) fill(part, next);
    }
    report(isPaused ? "Paused" : "Live", false);
  } catch (error) {
    if (mine !== request) return; // A newer request replaced this one.
    report("The operator does not answer. The page shows what it was doing before.", true);
  }
  schedule();
}

function schedule() {
  clearTimeout(timer);
  if (!isPaused && !document.hidden) timer = setTimeout(update, INTERVAL);
}

pause.hidden = false;
pause.addEventListener("click", () => {
  isPaused = !isPaused;
  pause.setAttribute("aria-pressed", String(isPaused));
  if (isPaused) { clearTimeout(timer); report("Paused", false); } else update();
});
document.addEventListener("visibilitychange", () => { if (!document.hidden && !isPaused) update(); });
document.addEventListener("click", event => {
  const summary = event.target.closest("summary");
  if (summary) summary.parentElement.dataset.touched = "1";
});
if (form) {
  const search = () => {
    const query = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (value) query.set(name, value);
    history.replaceState(null, "", "/?" + query);
    update();
  };
  let typing;
  form.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(search, 200); });
  form.addEventListener("submit", event => { event.preventDefault(); clearTimeout(typing); search(); });
}
report("Live", false);
schedule();
