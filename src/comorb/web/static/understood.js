// What was understood of the data, at a glance, and the way to correct it.

import { count, h, number, percent, said, t } from "/page/dom.js";
import { call, doing, may } from "./frame.js";

const KINDS = ["wide", "long", "delimited", "binary"];
const SYSTEMS = ["icd9cm", "icd10cm", "icd10", "icd9proc", "icd10pcs", "atc", "opaque"];
const ROLES = ["record", "patient", "age", "sex", "date", "weight"];

export function understood(row) {
  const { about } = row;
  const facts = [
    [count(about.records), t("about.records")],
    [count(about.features), t("understood.codes", { system: t(`system.${about.system}`) })],
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
    row.kind === "builtin" || !may("analyst") ? null : correction(row),
  );
}

function common(about) {
  const rows = about.common.map((one) =>
    h("tr", {}, h("td", {}, h("code", {}, one.code)), h("td", {}, one.name), h("td", { class: "num" }, count(one.records)), h("td", { class: "num quiet" }, percent(one.records === null ? null : one.records / about.records))),
  );
  return h("table", { class: "plain tight" }, h("caption", {}, t("understood.common")), h("tbody", {}, ...rows));
}

function dropped(about) {
  const lines = about.lines.filter((line) => line.before > line.after);
  const notes = [...lines.map((line) => `−${count(line.before - line.after)} ${t(`ledger.${line.unit}`)}: ${said(line.rule)}`), ...about.notes.map(said)];
  const problems = about.problems.map((one) => h("tr", {}, h("td", { class: "num" }, count(one.row)), h("td", {}, one.column), h("td", {}, one.reason)));
  return h(
    "div",
    {},
    h("h3", {}, t("understood.dropped")),
    notes.length ? h("ul", { class: "notes" }, ...notes.map((note) => h("li", {}, note))) : h("p", {}, t("understood.nothing")),
    problems.length
      ? h("details", {}, h("summary", {}, t("understood.problems")), h("table", { class: "plain tight" }, h("thead", {}, h("tr", {}, ...["row", "column", "reason"].map((key) => h("th", { scope: "col" }, t(`understood.${key}`))))), h("tbody", {}, ...problems)))
      : null,
  );
}

function correction(row) {
  const { about } = row;
  const layout = { ...row.reading.layout };
  const select = (id, options, value) => h("select", { id }, ...options.map(([key, name]) => h("option", { value: key, selected: key === value }, name)));
  const kind = select("fix-layout", KINDS.map((one) => [one, t(`layout.${one}.short`)]), about.layout);
  const system = select("fix-system", SYSTEMS.map((one) => [one, t(`system.${one}`)]), about.system);
  const unit = select("fix-unit", ["visit", "patient"].map((one) => [one, t(`unit.${one}`)]), about.unit);
  const none = ["", t("understood.no_column")];
  const roles = ROLES.map((role) => [role, select(`fix-${role}`, [none, ...about.columns.map((name) => [name, name])], about.roles[role] ?? "")]);
  const shown = about.covariates.map((name) => h("input", { type: "checkbox", value: name, checked: !row.outcomes || row.outcomes.includes(name) }));
  const field = (id, name, input) => h("div", { class: "field" }, h("label", { for: id }, name), input);

  async function save() {
    if (kind.value !== about.layout) layout.kind = kind.value;
    for (const [role, input] of roles) if (input.value && input.value !== about.roles[role]) layout[role] = input.value;
    const change = { outcomes: shown.filter((box) => box.checked).map((box) => box.value) };
    if (Object.keys(layout).length) change.layout = layout;
    if (system.value !== about.system) change.system = system.value;
    if (unit.value !== about.unit) change.unit = unit.value;
    await call("PATCH", `/api/v1/data/${row.id}`, change);
    window.location.reload();
  }

  return h(
    "details",
    {},
    h("summary", {}, t("understood.correct")),
    h("div", { class: "row" }, field("fix-layout", t("understood.layout"), kind), field("fix-system", t("understood.system"), system), field("fix-unit", t("understood.unit"), unit)),
    h("div", { class: "row" }, ...roles.map(([role, input]) => field(`fix-${role}`, t(`role.${role}`), input))),
    shown.length ? h("fieldset", {}, h("legend", {}, t("understood.outcomes")), ...shown.map((box) => h("label", {}, box, ` ${box.value}`))) : null,
    h("p", {}, h("button", { type: "button", click: doing(save) }, t("understood.again"))),
  );
}
