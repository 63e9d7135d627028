// The keys: a letter for each place, and '?' to see them.

import { h, t } from "/page/dom.js";
import { ask } from "./frame.js";

const SECTIONS = { c: "cards", f: "frequency", r: "relevance", m: "heatmap", o: "outcomes", t: "trust", w: "why" };

export function listen() {
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input:not([type=range]), textarea, select, dialog");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "?") showKeys();
    else if (event.key === "h") window.location.assign("/");
    else if (event.key in SECTIONS) jumpTo(SECTIONS[event.key]);
    else if (/^[1-9]$/.test(event.key)) document.querySelector(`.card[data-number="${event.key}"]`)?.focus();
    else return;
    event.preventDefault();
  });
}

export function jumpTo(id) {
  const part = document.getElementById(id);
  if (!part) return;
  part.scrollIntoView({ block: "start" });
  const head = part.querySelector("h2");
  head.setAttribute("tabindex", "-1");
  head.focus({ preventScroll: true });
}

export function showKeys() {
  const rows = [
    ["?", t("keys.help")],
    ["h", t("keys.home")],
    ["1 – 9", t("keys.card")],
    ...Object.entries(SECTIONS).map(([key, id]) => [key, t(`${id}.title`)]),
    ["+ − ↑ ↓ 0", t("keys.heatmap")],
    ["Tab", t("keys.tab")],
    ["Esc", t("keys.escape")],
  ];
  const table = h("dl", { class: "terms" }, ...rows.flatMap(([key, text]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)]));
  ask(t("keys.title"), [table]);
}
