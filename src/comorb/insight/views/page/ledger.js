// The ledger: what was left out, and why.

import { count, h, said, section, t } from "./dom.js";

export function ledger({ profile }) {
  const { source } = profile;
  const rows = source.lines.map((line) =>
    h(
      "tr",
      {},
      h("td", {}, t(`ledger.${line.unit}`)),
      h("td", {}, said(line.rule)),
      h("td", { class: "num" }, count(line.before)),
      h("td", { class: "num" }, line.before > line.after ? `−${count(line.before - line.after)}` : "–"),
      h("td", { class: "num" }, count(line.after)),
    ),
  );
  const heads = ["unit", "rule", "before", "removed", "after"].map((key) =>
    h("th", { scope: "col", class: key === "unit" || key === "rule" ? null : "num" }, t(`ledger.${key}`)),
  );
  return section(
    "ledger",
    h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": t("ledger.title") }, h("table", { class: "plain" }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows))),
    source.notes.length ? h("ul", { class: "notes" }, ...source.notes.map((note) => h("li", {}, said(note)))) : null,
  );
}
