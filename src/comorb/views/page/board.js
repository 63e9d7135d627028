// The columns of the board: what its rows are sorted by, and what a cell shows.

import { clusterChip, count, h, hasText, number, percent, svg, t } from "./dom.js";
import { countText, shareBand } from "./data.js";
import { dot, figureOf, scaleOf } from "./scale.js";

export const RATES = ["died", "readmitted", "age"];

export function usedName(name) {
  return hasText(`burden.${name}`) ? t(`burden.${name}`) : name.replaceAll("_", " ");
}

/** @param {Profile} profile @param {State} state */
export function chosenUse(profile, state) {
  const names = profile.burden?.columns ?? [];
  return names.includes(state.get("use")) ? state.get("use") : profile.page.main_uses[0];
}

/**
 * @typedef {object} Column
 * @property {string} key
 * @property {() => string} title
 * @property {(j: number) => Child} cell
 * @property {(j: number) => Figure} value what rows are sorted by
 * @property {boolean} [wide]
 * @property {string} [hint]
 */

// Each column: its key and title, the number that rows are sorted by, and what a cell shows.
export function boardColumns(profile, use) {
  const used = profile.burden;
  const all = profile.clusters.length;
  const records = (j) =>
    used ? used.records[j] : j === all ? profile.source.records : profile.clusters[j].size;
  const share = (j) => (used ? used.share[j] : j === all ? 1 : profile.clusters[j].share);
  /** @type {Column[]} */
  const made = [
    {
      key: "cluster",
      title: () => t("burden.cluster"),
      value: (j) => -j,
      cell: (j) => (j === all ? t("all") : clusterName(profile, j)),
    },
    {
      key: "records",
      title: () => t(`burden.unit.${profile.page.unit}`),
      value: records,
      cell: (j) => [countText(profile, records(j)), small(percent(share(j)))],
    },
  ];
  if (used?.patients.length) {
    const patients = (j) => used.patients[j];
    const each = (j) =>
      used.patients[j] ? number(used.records[j] / used.patients[j], 2) : t("hidden");
    made.push({
      key: "patients",
      title: () => t("burden.patients"),
      value: patients,
      cell: (j) => [countText(profile, patients(j)), small(t("burden.each", { n: each(j) }))],
    });
  }
  for (const name of profile.page.main_uses) {
    const m = used.columns.indexOf(name);
    const total = (j) => used.totals[m][j];
    const mean = (j) => used.means?.[m][j] ?? null;
    const each = (j) => (mean(j) === null ? null : small(t("burden.mean", { x: amount(mean(j)) })));
    made.push({
      key: name,
      title: () => firstUpper(usedName(name)),
      value: total,
      cell: (j) => [
        count(total(j) === null ? null : Math.round(total(j))),
        small(percent(used.shares[m][j])),
        each(j),
      ],
    });
  }
  if (used?.columns.length) made.push(pairColumn(used, profile.page.unit, use));
  for (const name of RATES) {
    const figure = figureOf(profile, name);
    if (figure) made.push(rateColumn(profile, name, figure));
  }
  return made;
}

export function firstUpper(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function amount(x) {
  return number(x, Math.abs(x) >= 1000 ? 0 : 1);
}

export function small(text) {
  return h("span", { class: "beneath quiet" }, text);
}

/** @param {Profile} profile */
function clusterName(profile, j) {
  const cluster = profile.clusters[j];
  return h(
    "span",
    { class: "named" },
    clusterChip(cluster),
    h("span", {}, cluster.name, doubt(profile, cluster)),
  );
}

// The mark of a cluster that hardly comes out again, or null.
/** @param {Profile} profile @param {Cluster} cluster */
export function doubt(profile, cluster) {
  if (cluster.stability === null || cluster.stability >= profile.page.reliable) return null;
  return h(
    "span",
    { class: "doubtful", title: t("cards.stability.how") },
    ` · ${t("cards.doubtful")}`,
  );
}

// The share of records above that of what they use, on one axis for all rows.
/** @param {Burden} burden @param {PageFigures["unit"]} unit @param {() => string} use */
function pairColumn({ share, shares, columns }, unit, use) {
  const all = share.length - 1;
  const ratio = (part, whole) => (part === null || !whole ? null : part / whole);
  const of = (j) => shares[columns.indexOf(use())][j];
  const end = () =>
    Math.max(...share.slice(0, all).flatMap((_, j) => [share[j] ?? 0, of(j) ?? 0]), 0.01);
  const title = () => t("burden.pair", { unit: t(`burden.plural.${unit}`), what: usedName(use()) });
  const cell = (j) => {
    if (j === all) return null;
    const bar = (value, kind, y) =>
      svg("rect", {
        class: kind,
        x: 0,
        y,
        width: (100 * Math.max(value ?? 0, 0)) / end(),
        height: 8,
      });
    return h(
      "span",
      { class: "pair" },
      svg(
        "svg",
        { viewBox: "0 0 100 20", preserveAspectRatio: "none", "aria-hidden": "true" },
        bar(share[j], "of-records", 1),
        bar(of(j), "of-use", 11),
      ),
      h("span", { class: "num" }, `${percent(share[j])} / ${percent(of(j))}`),
    );
  };
  return {
    key: "pair",
    title,
    value: (j) => ratio(of(j), share[j]),
    cell,
    wide: true,
  };
}

/** @param {Profile} profile */
function rateColumn(profile, name, figure) {
  const { at, ends } = scaleOf([figure], figure.kind);
  const show = (x) => (figure.kind === "share" ? percent(x, 1) : number(x, 1));
  const cell = (j) => {
    const [low, high] = [figure.low[j], figure.high[j]];
    const x = figure.estimate[j];
    const text = figure.counts
      ? shareBand(profile, x, figure.counts[j], figure.known[j], 1)
      : show(x);
    const range = low === null ? null : `${show(low)} – ${show(high)}`;
    const counted = figure.counts
      ? small(
          t("outcomes.counted", {
            n: countText(profile, figure.counts[j]),
            all: countText(profile, figure.known[j]),
          }),
        )
      : null;
    const better = j < profile.clusters.length ? (figure.better?.[j] ?? null) : null;
    return h(
      "span",
      { class: "rate", title: range },
      h("span", { class: "num" }, text),
      x === null ? null : dot(at(x), at(low ?? x), at(high ?? x)),
      range ? small(range) : null,
      counted,
      better === null ? null : small(t("outcomes.better", { x: show(better) })),
    );
  };
  return {
    key: name,
    title: () => t(`burden.rate.${name}`),
    value: (j) => figure.estimate[j],
    cell,
    hint: `${show(ends[0])} – ${show(ends[1])}`,
  };
}
