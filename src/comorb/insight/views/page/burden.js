// The board, the first view: a row for each cluster with what its records use, who dies and comes back.

import { count, h, hasText, number, percent, said, section, svg, t } from "./dom.js";
import { band, told } from "./data.js";
import { dot, figureOf, scaleOf } from "./scale.js";

const DOUBTED = 0.75;
const RATES = ["died", "readmitted", "age"];
const USED_FIRST = ["los", "cost", "visits"];

export function burden({ profile, state }) {
  const used = profile.burden;
  const body = h("tbody");
  const columns = boardColumns(profile, () => chosenUse(profile, state));
  const heads = columns.map((column) => boardHead(column, state));
  const foot = h("tfoot");
  const table = h(
    "table",
    { class: "plain board" },
    h("caption", { class: "unseen" }, t("burden.title")),
    h("thead", {}, h("tr", {}, ...heads)),
    body,
    foot,
  );

  function draw() {
    const all = profile.clusters.length;
    const sort = columns.find(({ key }) => key === state.get("board")) ?? columns[0];
    const order = [...profile.clusters.keys()];
    if (sort !== columns[0]) order.sort((a, b) => (sort.value(b) ?? -1) - (sort.value(a) ?? -1));
    body.replaceChildren(...order.map((j) => boardRow(columns, j, { "data-cluster": j, vars: { "--c": `var(--cluster-${j})` } })));
    foot.replaceChildren(boardRow(columns, all, { class: "overall" }));
    columns.forEach((column, i) => {
      const mark = column !== sort ? null : column === columns[0] ? "ascending" : "descending";
      if (mark) heads[i].setAttribute("aria-sort", mark);
      else heads[i].removeAttribute("aria-sort");
      if (column.key === "pair") heads[i].querySelector("button").textContent = column.title();
    });
  }

  state.watch("board", draw);
  state.watch("use", draw);
  draw();
  return section(
    "burden",
    findings(profile),
    h("div", { class: "controls" }, useChooser(profile, state), sortChooser(columns, state)),
    h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": t("burden.title") }, table),
    h("p", { class: "quiet" }, ...corrections(profile)),
    used ? amounts(profile) : null,
  );
}

// Which rates are corrected, and which aren't.
function corrections(profile) {
  const known = RATES.map((name) => [t(`burden.rate.${name}`), figureOf(profile, name)]).filter(([, figure]) => figure);
  const named = (corrected) => known.filter(([, figure]) => figure.corrected === corrected).map(([name]) => name).join(", ");
  const said = [["burden.corrected", named(true)], ["burden.uncorrected", named(false)]].filter(([, names]) => names);
  return [...said.map(([key, names]) => `${t(key, { names })} `), t("burden.totals")];
}

// The sentences that a board's pack says too; those of one cluster light it up.
export function findings(profile) {
  const items = profile.findings.map(({ text, clusters }) => {
    const place = clusters.length === 1 ? profile.clusters.findIndex((one) => one.number === clusters[0]) : -1;
    return h("li", place < 0 ? { class: "quiet" } : { "data-cluster": place, vars: { "--c": `var(--cluster-${place})` } }, text);
  });
  return h("ul", { class: "findings" }, ...items);
}

// What a record of these clusters is: a patient, a visit of one, or just a record.
function unitOf(profile) {
  const used = profile.burden;
  if (used?.columns.includes("visits")) return "patients";
  return used?.patients.length ? "visits" : "records";
}

function usedName(name) {
  return hasText(`burden.${name}`) ? t(`burden.${name}`) : name.replaceAll("_", " ");
}

function chosenUse(profile, state) {
  const names = profile.burden?.columns ?? [];
  const first = USED_FIRST.find((name) => names.includes(name)) ?? names[0];
  return names.includes(state.get("use")) ? state.get("use") : first;
}

// Each column: its key and title, the number that rows are sorted by, and what a cell shows.
function boardColumns(profile, use) {
  const used = profile.burden;
  const all = profile.clusters.length;
  const records = (j) => (used ? used.records[j] : j === all ? profile.source.records : profile.clusters[j].size);
  const share = (j) => (used ? used.share[j] : j === all ? 1 : profile.clusters[j].share);
  const unit = unitOf(profile);
  const made = [
    { key: "cluster", title: () => t("burden.cluster"), cell: (j) => (j === all ? t("all") : clusterName(profile, j)) },
    { key: "records", title: () => t(`burden.unit.${unit}`), value: records, cell: (j) => [told(profile, records(j)), small(percent(share(j)))] },
  ];
  if (used?.patients.length) {
    const patients = (j) => used.patients[j];
    const each = (j) => (used.patients[j] ? number(used.records[j] / used.patients[j], 2) : t("hidden"));
    made.push({ key: "patients", title: () => t("burden.patients"), value: patients, cell: (j) => [told(profile, patients(j)), small(t("burden.each", { n: each(j) }))] });
  }
  for (const name of mainUses(profile)) {
    const m = used.columns.indexOf(name);
    const total = (j) => used.totals[m][j];
    made.push({ key: name, title: () => firstUpper(usedName(name)), value: total, cell: (j) => [count(total(j) === null ? null : Math.round(total(j))), small(percent(used.shares[m][j]))] });
  }
  if (used?.columns.length) made.push(pairColumn(profile, use));
  for (const name of RATES) {
    const figure = figureOf(profile, name);
    if (figure) made.push(rateColumn(profile, name, figure));
  }
  return made;
}

function mainUses(profile) {
  const names = profile.burden?.columns ?? [];
  const main = USED_FIRST.filter((name) => names.includes(name));
  return main.length ? main : names.slice(0, 2);
}

function firstUpper(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function small(text) {
  return h("span", { class: "beneath quiet" }, text);
}

function clusterName(profile, j) {
  const cluster = profile.clusters[j];
  return h("span", { class: "named" }, h("span", { class: "chip" }, String(cluster.number)), h("span", {}, cluster.name, doubt(cluster)));
}

// The mark of a cluster that hardly comes out again, or null.
export function doubt(cluster) {
  if (cluster.stability === null || cluster.stability >= DOUBTED) return null;
  return h("span", { class: "doubtful", title: t("cards.stability.how") }, ` · ${t("cards.doubtful")}`);
}

// The share of records above that of what they use, on one axis for all rows.
function pairColumn(profile, use) {
  const { share, shares, columns } = profile.burden;
  const of = (j) => shares[columns.indexOf(use())][j];
  const end = () => Math.max(...profile.clusters.flatMap((_, j) => [share[j] ?? 0, of(j) ?? 0]), 0.01);
  const title = () => t("burden.pair", { unit: t(`burden.plural.${unitOf(profile)}`), what: usedName(use()) });
  const cell = (j) => {
    if (j === profile.clusters.length) return null;
    const bar = (value, kind, y) => svg("rect", { class: kind, x: 0, y, width: (100 * Math.max(value ?? 0, 0)) / end(), height: 8 });
    return h(
      "span",
      { class: "pair" },
      svg("svg", { viewBox: "0 0 100 20", preserveAspectRatio: "none", "aria-hidden": "true" }, bar(share[j], "of-records", 1), bar(of(j), "of-use", 11)),
      h("span", { class: "num" }, `${percent(share[j])} / ${percent(of(j))}`),
    );
  };
  return { key: "pair", title, value: (j) => (of(j) === null || !share[j] ? null : of(j) / share[j]), cell, wide: true };
}

function rateColumn(profile, name, figure) {
  const { at, ends } = scaleOf([figure], figure.kind);
  const show = (x) => (figure.kind === "share" ? percent(x, 1) : number(x, 1));
  const cell = (j) => {
    const [low, high] = [figure.low[j], figure.high[j]];
    const x = figure.estimate[j];
    const text = figure.counts ? band(profile, x, figure.counts[j], figure.known[j], 1) : show(x);
    const range = low === null ? null : `${show(low)} – ${show(high)}`;
    return h("span", { class: "rate", title: range }, h("span", { class: "num" }, text), x === null ? null : dot(at(x), at(low ?? x), at(high ?? x)), range ? h("span", { class: "beneath quiet" }, range) : null);
  };
  return { key: name, title: () => t(`burden.rate.${name}`), value: (j) => figure.estimate[j], cell, hint: `${show(ends[0])} – ${show(ends[1])}` };
}

function boardHead(column, state) {
  const choose = () => state.set("board", column.key === "cluster" ? "" : column.key);
  const title = column.hint ? t("burden.axis", { range: column.hint }) : null;
  return h("th", { scope: "col", class: column.key === "cluster" || column.wide ? null : "num" }, h("button", { type: "button", title, click: choose }, column.title()));
}

function boardRow(columns, j, marks) {
  const [first, ...rest] = columns;
  const cells = rest.map((column) => h("td", { class: column.wide ? "wide" : "num", "data-title": column.title() }, column.cell(j)));
  return h("tr", marks, h("th", { scope: "row" }, first.cell(j)), ...cells);
}

function useChooser(profile, state) {
  const names = profile.burden?.columns ?? [];
  if (names.length < 2) return null;
  const options = names.map((name) => h("option", { value: name, selected: name === chosenUse(profile, state) }, usedName(name)));
  return h("label", {}, `${t("burden.use")} `, h("select", { change: (event) => state.set("use", event.target.value) }, ...options));
}

// For narrow screens, where the heads of the columns aren't shown.
function sortChooser(columns, state) {
  const options = columns.map(({ key, title }) => h("option", { value: key === "cluster" ? "" : key, selected: key === state.get("board") }, title()));
  return h("label", { class: "narrow" }, `${t("burden.sort")} `, h("select", { change: (event) => state.set("board", event.target.value) }, ...options));
}

// Amounts that the board has no column for, and what was added up or left out.
function amounts(profile) {
  const { columns, totals, shares, notes } = profile.burden;
  const main = mainUses(profile);
  const more = columns.map((_, m) => m).filter((m) => !main.includes(columns[m]));
  const heads = profile.clusters.map((cluster, j) => h("th", { scope: "col", class: "num", title: cluster.name, vars: { "--c": `var(--cluster-${j})` } }, h("span", { class: "chip" }, String(cluster.number))));
  const cell = (m, j) => h("td", { class: "num" }, count(totals[m][j] === null ? null : Math.round(totals[m][j])), small(percent(shares[m][j])));
  const rows = more.map((m) => h("tr", {}, h("th", { scope: "row" }, firstUpper(usedName(columns[m]))), ...[...profile.clusters.keys(), profile.clusters.length].map((j) => cell(m, j))));
  if (!rows.length && !notes.length) return null;
  return h(
    "details",
    {},
    h("summary", {}, t("burden.more")),
    rows.length ? h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": t("burden.more") }, h("table", { class: "plain" }, h("thead", {}, h("tr", {}, h("td", {}), ...heads, h("th", { scope: "col", class: "num" }, t("all")))), h("tbody", {}, ...rows))) : null,
    notes.length ? h("ul", { class: "notes" }, ...notes.map((note) => h("li", {}, said(note)))) : null,
  );
}
