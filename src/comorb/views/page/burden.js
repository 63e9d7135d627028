// The board, the first view: a row for each cluster with what its records use, who dies and comes back.

import {
  button,
  clusterChip,
  count,
  find,
  h,
  ofCluster,
  percent,
  plainTable,
  scrollBox,
  section,
  t,
} from "./dom.js";
import { RATES, boardColumns, chosenUse, firstUpper, small, usedName } from "./board.js";
import { figureOf } from "./scale.js";

/** @param {Shown} shown */
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
    body.replaceChildren(...order.map((j) => boardRow(columns, j, ofCluster(j))));
    foot.replaceChildren(boardRow(columns, all, { class: "overall" }));
    columns.forEach((column, i) => {
      const mark = column !== sort ? null : column === columns[0] ? "ascending" : "descending";
      if (mark) heads[i].setAttribute("aria-sort", mark);
      else heads[i].removeAttribute("aria-sort");
      if (column.key === "pair") find("button", heads[i]).textContent = column.title();
    });
  }

  state.watch("board", draw);
  state.watch("use", draw);
  draw();
  return section(
    "burden",
    findings(profile),
    h("div", { class: "controls" }, useChooser(profile, state), sortChooser(columns, state)),
    scrollBox(t("burden.title"), table),
    h("p", { class: "quiet" }, ...corrections(profile)),
    used ? amounts(profile, used) : null,
  );
}

// What the figures are of, and what corrected ones allow for, where there are any.
/** @param {Profile} profile */
function corrections(profile) {
  const corrected = RATES.some((name) => figureOf(profile, name)?.better);
  return corrected ? [t("burden.totals"), " ", t("burden.corrected")] : [t("burden.totals")];
}

// The sentences that a board's pack says too; those of one cluster light it up.
/** @param {Profile} profile */
export function findings(profile) {
  const items = profile.findings.map(({ text, clusters }) => {
    const place =
      clusters.length === 1 ? profile.clusters.findIndex((one) => one.number === clusters[0]) : -1;
    return h("li", place < 0 ? { class: "quiet" } : ofCluster(place), text);
  });
  return h("ul", { class: "findings" }, ...items);
}

/** @param {State} state */
function boardHead(column, state) {
  const choose = () => state.set("board", column.key === "cluster" ? "" : column.key);
  const title = column.hint ? t("burden.axis", { range: column.hint }) : null;
  return h(
    "th",
    { scope: "col", class: column.key === "cluster" || column.wide ? null : "num" },
    button(column.title(), choose, { title }),
  );
}

function boardRow(columns, j, marks) {
  const [first, ...rest] = columns;
  const cells = rest.map((column) =>
    h("td", { class: column.wide ? "wide" : "num", "data-title": column.title() }, column.cell(j)),
  );
  return h("tr", marks, h("th", { scope: "row" }, first.cell(j)), ...cells);
}

/** @param {Profile} profile @param {State} state */
function useChooser(profile, state) {
  const names = profile.burden?.columns ?? [];
  if (names.length < 2) return null;
  const options = names.map((name) =>
    h("option", { value: name, selected: name === chosenUse(profile, state) }, usedName(name)),
  );
  return h(
    "label",
    {},
    `${t("burden.use")} `,
    h("select", { change: (event) => state.set("use", event.target.value) }, ...options),
  );
}

/** For narrow screens, where the heads of the columns aren't shown. @param {State} state */
function sortChooser(columns, state) {
  const options = columns.map(({ key, title }) =>
    h(
      "option",
      { value: key === "cluster" ? "" : key, selected: key === state.get("board") },
      title(),
    ),
  );
  return h(
    "label",
    { class: "narrow" },
    `${t("burden.sort")} `,
    h("select", { change: (event) => state.set("board", event.target.value) }, ...options),
  );
}

// Amounts that the board has no column for, and what was added up or left out.
/** @param {Profile} profile @param {Burden} burden */
function amounts(profile, { columns, totals, shares, notes }) {
  const more = [...columns.keys()].filter((m) => !profile.page.main_uses.includes(columns[m]));
  const heads = profile.clusters.map((cluster, j) =>
    h(
      "th",
      { scope: "col", class: "num", title: cluster.name, vars: { "--c": `var(--cluster-${j})` } },
      clusterChip(cluster),
    ),
  );
  const cell = (m, j) =>
    h(
      "td",
      { class: "num" },
      count(totals[m][j] === null ? null : Math.round(totals[m][j] ?? 0)),
      small(percent(shares[m][j])),
    );
  const rows = more.map((m) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, firstUpper(usedName(columns[m]))),
      ...[...profile.clusters.keys(), profile.clusters.length].map((j) => cell(m, j)),
    ),
  );
  if (!rows.length && !notes.length) return null;
  return h(
    "details",
    {},
    h("summary", {}, t("burden.more")),
    rows.length
      ? scrollBox(
          t("burden.more"),
          plainTable(
            "plain",
            [h("td", {}), ...heads, h("th", { scope: "col", class: "num" }, t("all"))],
            rows,
          ),
        )
      : null,
    notes.length ? h("ul", { class: "notes" }, ...notes.map((note) => h("li", {}, note))) : null,
  );
}
