// Burden: what the records of each cluster use, as pairs of bars: their share of records, and of what is used.

import { count, h, hasText, number, percent, said, section, svg, t } from "./dom.js";
import { band, told } from "./data.js";

const PAIRED = ["los", "cost", "visits"];

export function burden({ profile }) {
  const used = profile.burden;
  if (!used || !(used.columns.length || used.rates.length)) return null;
  const named = used.columns.map((_, m) => m).filter((m) => PAIRED.includes(used.columns[m]));
  const shown = (named.length ? named : used.columns.map((_, m) => m)).slice(0, 6);
  return section(
    "burden",
    ...shown.map((m) => mostUsed(profile, m)),
    h("div", { class: "figures" }, ...shown.map((m) => pairedBars(profile, m))),
    burdenTable(profile),
    used.notes.length ? h("ul", { class: "quiet" }, ...used.notes.map((note) => h("li", {}, said(note)))) : null,
  );
}

function usedName(name) {
  return hasText(`burden.${name}`) ? t(`burden.${name}`) : name.replaceAll("_", " ");
}

// "20% of records use 33% of days in bed", of the cluster that uses most beyond its size.
function mostUsed(profile, m) {
  const { share, shares, columns } = profile.burden;
  const places = profile.clusters.map((_, j) => j).filter((j) => share[j] && shares[m][j]);
  if (!places.length) return null;
  const most = places.reduce((best, j) => (shares[m][j] / share[j] > shares[m][best] / share[best] ? j : best));
  if (shares[m][most] <= share[most]) return null;
  const values = { records: percent(share[most]), share: percent(shares[m][most]), what: usedName(columns[m]), name: profile.clusters[most].name };
  return h("p", {}, t("burden.sentence", values));
}

function pairedBars(profile, m) {
  const { share, shares, columns } = profile.burden;
  const every = profile.clusters.flatMap((_, j) => [share[j] ?? 0, shares[m][j] ?? 0]);
  const end = Math.max(...every, 0.01);
  const rows = profile.clusters.map((cluster, j) =>
    h(
      "tr",
      { "data-cluster": j, vars: { "--c": `var(--cluster-${j})` } },
      h("th", { scope: "row", title: cluster.name }, h("span", { class: "chip" }, String(cluster.number))),
      h("td", { class: "pair" }, pairOfBars((share[j] ?? 0) / end, Math.max(shares[m][j] ?? 0, 0) / end)),
      h("td", { class: "num" }, `${percent(share[j])} / ${percent(shares[m][j])}`),
    ),
  );
  return h("table", { class: "figure" }, h("caption", {}, t("burden.pair", { what: usedName(columns[m]) })), h("tbody", {}, ...rows));
}

function pairOfBars(records, used) {
  return svg(
    "svg",
    { viewBox: "0 0 100 18", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: "of-records", x: 0, y: 1, width: 100 * records, height: 6 }),
    svg("rect", { class: "of-use", x: 0, y: 9, width: 100 * used, height: 8 }),
  );
}

function burdenTable(profile) {
  const used = profile.burden;
  const { patients, records, totals, known, rates } = used;
  const summed = used.columns.indexOf("visits");
  const visits = (j) => {
    const [many, people] = patients.length ? [records[j], patients[j]] : [totals[summed][j], known[summed][j]];
    return number(people ? many / people : null, 2);
  };
  const counted = patients.length > 0 || summed >= 0;
  const columns = used.columns.map((name, m) => [t("burden.total", { what: usedName(name) }), (j) => count(totals[m][j] === null ? null : Math.round(totals[m][j]))]);
  const shares = rates.map((name, r) => [usedName(name), (j) => band(profile, used.rate[r][j], used.rate_counts[r][j], used.rate_known[r][j], 1)]);
  const every = [
    [t("burden.records"), (j) => told(profile, records[j])],
    ...(patients.length ? [[t("burden.patients"), (j) => told(profile, patients[j])]] : []),
    ...(counted ? [[t("burden.visits_a_patient"), visits]] : []),
    ...columns,
    ...shares,
  ];
  const places = [...profile.clusters.keys(), profile.clusters.length];
  const heads = profile.clusters.map((cluster, j) =>
    h("th", { scope: "col", class: "num", title: cluster.name, "data-cluster": j, vars: { "--c": `var(--cluster-${j})` } }, h("span", { class: "chip" }, String(cluster.number))),
  );
  const rows = every.map(([title, cell]) => h("tr", {}, h("th", { scope: "row" }, title), ...places.map((j) => h("td", { class: "num" }, cell(j)))));
  const head = h("tr", {}, h("td", {}), ...heads, h("th", { scope: "col", class: "num" }, t("all")));
  const table = h("table", { class: "plain used" }, h("thead", {}, head), h("tbody", {}, ...rows));
  return h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": t("burden.title") }, table);
}
