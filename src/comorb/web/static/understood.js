// What was understood of the data, at a glance.

import { count, h, number, percent, said, t } from "/page/dom.js";
import { systemName } from "./columns.js";
import { assets } from "./frame.js";
import { counted } from "./view.js";

export function understood(row) {
  const { about } = row;
  const facts = [
    [count(about.records), t("about.records", { n: count(about.records) })],
    [count(about.features), t("understood.codes", { n: about.features, system: systemName(about, about.system) })],
    [number(about.mentions / about.records, 1), t("understood.each")],
  ];
  return h(
    "section",
    { class: "understood", "aria-labelledby": "understood-title" },
    h("h2", { id: "understood-title" }, t("understood.title")),
    h("ul", { class: "facts" }, ...facts.map(([value, name]) => h("li", {}, h("strong", {}, value), ` ${name}`))),
    row.kind === "builtin" ? null : h("p", {}, t(`layout.${about.layout}`)),
    common(about),
    dropped(about),
    row.exact && about.columns.length ? h("p", {}, h("a", { href: "#columns-title" }, t("understood.correct"))) : null,
  );
}

function common(about) {
  const rows = about.common.map((one) =>
    h("tr", {}, h("td", {}, h("code", {}, one.code)), h("td", {}, one.names?.[assets.language] ?? one.name), h("td", { class: "num" }, counted(one.records)), h("td", { class: "num quiet" }, percent(one.records === null ? null : one.records / about.records))),
  );
  return h("table", { class: "plain tight" }, h("caption", {}, t("understood.common")), h("tbody", {}, ...rows));
}

function notes(texts) {
  return h("ul", { class: "notes" }, ...texts.map((text) => h("li", {}, text)));
}

function dropped(about) {
  const lines = about.lines.filter((line) => line.before > line.after);
  const left = lines.map((line) => `−${count(line.before - line.after)} ${t(`ledger.${line.unit}`)}: ${said(line.rule)}`);
  const problems = about.problems.map((one) => h("tr", {}, h("td", { class: "num" }, count(one.row)), h("td", {}, one.column), h("td", {}, one.reason)));
  return h(
    "div",
    {},
    h("h3", {}, t("understood.dropped")),
    left.length ? notes(left) : h("p", {}, t("understood.nothing")),
    ...(about.notes.length ? [h("h3", {}, t("columns.remark")), notes(about.notes.map(said))] : []),
    problems.length
      ? h("details", {}, h("summary", {}, t("understood.problems")), h("table", { class: "plain tight" }, h("thead", {}, h("tr", {}, ...["row", "column", "reason"].map((key) => h("th", { scope: "col" }, t(`understood.${key}`))))), h("tbody", {}, ...problems)))
      : null,
  );
}

