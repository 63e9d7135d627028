// Data: what was understood, the cohort to cluster, and what each column is.

import { count, h, number, percent, plainTable, t } from "/page/dom.js";
import { cohortForm } from "./cohort.js";
import { columns, systemName } from "./columns.js";
import { featureBoxes } from "./features.js";
import { assets, frame, get, may, page, startPage, titleOf, trail, waiting } from "./frame.js";
import { recordCount } from "./view.js";

startPage(async () => {
  page.replaceChildren(h("main", { class: "alone" }, waiting(t("data.reading"))));
  const row = await get(`/api/v1/data/${frame.key}`);
  row.title = titleOf(row);
  trail([t("home.title"), "/"], [row.title]);
  page.replaceChildren(
    h("main", {}, h("h1", {}, row.title), ...(row.refused ? refused(row) : await opened(row))),
  );
});

async function opened(row) {
  const wanted = new URLSearchParams(window.location.search).getAll("features");
  const boxes = may("analyst")
    ? featureBoxes(
        row.about.covariates.filter((name) => name !== "date"),
        wanted,
      )
    : null;
  const halves = h(
    "div",
    { class: "halves wide" },
    boxes ? await cohortForm(row, boxes) : null,
    summary(row),
  );
  return [halves, columns(row, row.about, boxes)];
}

// A table that could not be read as it is: say why, and let its columns be named.
function refused(row) {
  return [
    h("p", { class: "notice wrong", role: "alert" }, row.refused.error),
    h("p", {}, t("data.name_columns")),
    columns(row, row.refused),
  ];
}

// What was understood of the data, at a glance.
function summary(row) {
  const { about } = row;
  const facts = [
    [count(about.records), t("about.records", { n: count(about.records) })],
    [
      count(about.features),
      t("understood.codes", { n: about.features, system: systemName(about, about.system) }),
    ],
    [number(about.mentions / about.records, 1), t("understood.each")],
  ];
  return h(
    "section",
    { class: "understood", "aria-labelledby": "understood-title" },
    h("h2", { id: "understood-title" }, t("understood.title")),
    h(
      "ul",
      { class: "facts" },
      ...facts.map(([value, name]) => h("li", {}, h("strong", {}, value), ` ${name}`)),
    ),
    row.kind === "builtin" ? null : h("p", {}, t(`layout.${about.layout}`)),
    commonCodes(about),
    droppedLines(about),
    row.exact && about.columns.length
      ? h("p", {}, h("a", { href: "#columns-title" }, t("understood.correct")))
      : null,
  );
}

function commonCodes(about) {
  const rows = about.common.map((one) =>
    h(
      "tr",
      {},
      h("td", {}, h("code", {}, one.code)),
      h("td", {}, one.names?.[assets.language] ?? one.name),
      h("td", { class: "num" }, recordCount(one.records)),
      h(
        "td",
        { class: "num quiet" },
        percent(one.records === null ? null : one.records / about.records),
      ),
    ),
  );
  return h(
    "table",
    { class: "plain tight" },
    h("caption", {}, t("understood.common")),
    h("tbody", {}, ...rows),
  );
}

function notes(texts) {
  return h("ul", { class: "notes" }, ...texts.map((text) => h("li", {}, text)));
}

function droppedLines(about) {
  const lines = about.lines.filter((line) => line.before > line.after);
  const left = lines.map(
    (line) => `−${count(line.before - line.after)} ${t(`ledger.${line.unit}`)}: ${line.rule}`,
  );
  const problems = about.problems.map((one) =>
    h(
      "tr",
      {},
      h("td", { class: "num" }, count(one.row)),
      h("td", {}, one.column),
      h("td", {}, one.reason),
    ),
  );
  return h(
    "div",
    {},
    h("h3", {}, t("understood.dropped")),
    left.length ? notes(left) : h("p", {}, t("understood.nothing")),
    ...(about.notes.length ? [h("h3", {}, t("columns.remark")), notes(about.notes)] : []),
    problems.length
      ? h(
          "details",
          {},
          h("summary", {}, t("understood.problems")),
          plainTable(
            "plain tight",
            ["row", "column", "reason"].map((key) =>
              h("th", { scope: "col" }, t(`understood.${key}`)),
            ),
            problems,
          ),
        )
      : null,
  );
}
