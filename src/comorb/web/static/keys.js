// The keys: a letter for each place, and '?' to see them.

import { h, jumpTo, t } from "/page/dom.js";
import { SECTIONS } from "/page/sections.js";
import { ask } from "./frame.js";

const PLACES = { ...Object.fromEntries(SECTIONS.filter(({ key }) => key).map(({ key, id }) => [key, id])), g: "tree", p: "map", n: "arrive", w: "why" };

export function listen() {
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input:not([type=range]), textarea, select, dialog");
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "?") showKeys();
    else if (event.key === "h") window.location.assign("/");
    else if (event.key in PLACES) jumpTo(PLACES[event.key]);
    else if (/^[1-9]$/.test(event.key)) document.querySelector(`.card[data-number="${event.key}"]`)?.focus();
    else return;
    event.preventDefault();
  });
}

export function showKeys() {
  const rows = [
    ["?", t("keys.help")],
    ["h", t("keys.home")],
    ["1 – 9", t("keys.card")],
    ...Object.entries(PLACES).map(([key, id]) => [key, t(`${id}.title`)]),
    ["+ − ↑ ↓ 0", t("keys.heatmap")],
    ["Tab", t("keys.tab")],
    ["Esc", t("keys.escape")],
  ];
  const table = h("dl", { class: "terms" }, ...rows.flatMap(([key, text]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)]));
  ask(t("keys.title"), [table]);
}
