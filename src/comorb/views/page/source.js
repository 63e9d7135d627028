// Where the clusters come from: what was clustered, what was left out, and how to do it again.

import { count, h, plainTable, present, scrollBox, section, t } from "./dom.js";

// Title, numbers, the reason for the number of clusters, and whether counts are protected.
/** @param {Profile} profile */
export function header(profile) {
  const { source } = profile;
  const facts = present([
    [count(source.records), t("about.records", { n: count(source.records) })],
    source.features || !profile.features
      ? [
          count(source.features),
          t("about.codes", {
            n: count(source.features),
            system: source.system_title ?? "",
            level: levelName(source.level),
          }),
        ]
      : null,
    profile.features
      ? [count(profile.features.length), t("about.features", { n: profile.features.length })]
      : null,
    [count(profile.clusters.length), t("about.clusters", { n: profile.clusters.length })],
    source.weight === null ? null : [count(Math.round(source.weight)), t("about.weight")],
  ]);
  return h(
    "header",
    {},
    h("h1", {}, source.title),
    h(
      "ul",
      { class: "facts" },
      ...facts.map(([value, name]) => h("li", {}, h("strong", {}, value), ` ${name}`)),
    ),
    source.reason ? h("p", {}, h("strong", {}, `${t("about.reason")} `), source.reason) : null,
    h(
      "p",
      { class: "notice view" },
      t(profile.min_cell ? "about.protected" : "about.full", {
        n: profile.min_cell,
        few: profile.min_cell - 1,
      }),
    ),
  );
}

function levelName(level) {
  return level
    .split("+")
    .map((part) => t(`level.${part}`))
    .join(" + ");
}

/** The ledger: what was left out, and why. @param {Shown} shown */
export function ledger({ profile }) {
  const { source } = profile;
  const rows = source.lines.map((line) =>
    h(
      "tr",
      {},
      h("td", {}, t(`ledger.${line.unit}`)),
      h("td", {}, line.rule),
      h("td", { class: "num" }, count(line.before)),
      h(
        "td",
        { class: "num" },
        line.before > line.after ? `−${count(line.before - line.after)}` : "–",
      ),
      h("td", { class: "num" }, count(line.after)),
    ),
  );
  const heads = ["unit", "rule", "before", "removed", "after"].map((key) =>
    h(
      "th",
      { scope: "col", class: key === "unit" || key === "rule" ? null : "num" },
      t(`ledger.${key}`),
    ),
  );
  return section(
    "ledger",
    scrollBox(t("ledger.title"), plainTable("plain", heads, rows)),
    source.notes.length
      ? h("ul", { class: "notes" }, ...source.notes.map((note) => h("li", {}, note)))
      : null,
  );
}

/** @param {Shown} shown */
export function again({ profile }) {
  const { source } = profile;
  const facts = present([
    source.command ? [t("again.command"), h("code", {}, source.command)] : null,
    [t("again.version"), h("code", {}, `comorb ${source.version}`)],
    source.digest ? [t("again.digest"), h("code", { class: "digest" }, source.digest)] : null,
  ]);
  return section(
    "again",
    h(
      "dl",
      { class: "terms" },
      ...facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
    ),
  );
}
