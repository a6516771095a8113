// The pages work without this file. It adds buttons that copy, the "/" key, and pages that follow the cluster.
"use strict";

const EVERY_MS = 10000;

function addCopyButtons() {
  if (!navigator.clipboard) return;
  for (const place of document.querySelectorAll(".paste")) {
    if (place.querySelector(".copy")) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(place.querySelector("pre").textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    place.append(button);
  }
}

function focusFilterOnSlash() {
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input, select, textarea");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const filter = document.querySelector("input[type=search]");
    if (filter === null) return;
    event.preventDefault();
    filter.focus();
    filter.select();
  });
}

function say(text) {
  const line = document.querySelector(".stale");
  line.hidden = text === "";
  line.textContent = text;
}

// Puts a new page in place of the one shown: what was unfolded stays so, and so does the focus.
function show(text) {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  const open = [...document.querySelectorAll("details[open][id]")].map((each) => each.id);
  const focused = document.activeElement && document.activeElement.id;
  for (const part of ["main", ".seen"]) {
    const [old, latest] = [document.querySelector(part), fresh.querySelector(part)];
    if (old && latest) old.replaceWith(document.importNode(latest, true));
  }
  for (const id of open) {
    const each = document.getElementById(id);
    if (each) each.open = true;
  }
  if (focused && document.getElementById(focused)) document.getElementById(focused).focus();
  addCopyButtons();
}

function followTheCluster() {
  if (!document.documentElement.hasAttribute("data-live")) return;
  let shown = null;
  setInterval(async () => {
    const typing = document.activeElement && document.activeElement.matches("main input, main select");
    if (document.hidden || typing) return;
    try {
      const answer = await fetch(location.href, { cache: "no-cache" });
      if (!answer.ok) throw new Error(String(answer.status));
      const mark = answer.headers.get("ETag");
      const text = await answer.text();
      if (mark !== shown) show(text);
      shown = mark;
      say("");
    } catch {
      say("evenspread does not answer: is kubectl port-forward still running? This page is as old as it says.");
    }
  }, EVERY_MS);
}

addCopyButtons();
focusFilterOnSlash();
followTheCluster();
