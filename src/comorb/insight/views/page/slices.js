// Slices: the share of each cluster by age, sex, site and time, the clusters being fixed.

import { h, hasText, number, percent, said, section, t, term } from "./dom.js";
import { band, told } from "./data.js";
import { valueName } from "./outcomes.js";

export function slices({ profile }) {
  if (!profile.slices?.length) return null;
  return section("slices", ...profile.slices.map((cut) => sliceTable(profile, cut)));
}

function sliceName(cut) {
  const [name] = cut.by.split(":");
  return hasText(`slices.${name}`) ? t(`slices.${name}`) : name.replaceAll("_", " ");
}

function sliceTable(profile, cut) {
  const all = profile.clusters.length;
  const heads = profile.clusters.map((cluster, j) =>
    h("th", { scope: "col", class: "num", title: cluster.name, vars: { "--c": `var(--cluster-${j})` } }, h("span", { class: "chip" }, String(cluster.number))),
  );
  const rows = cut.labels.map((label, s) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, valueName(label)),
      h("td", { class: "num quiet" }, told(profile, cut.counts[s][all])),
      ...profile.clusters.map((_, j) => sliceCell(profile, cut, s, j)),
    ),
  );
  const test = h("tr", { class: "quiet" }, h("th", { scope: "row" }, term("p", t(cut.ordered ? "slices.trend" : "slices.difference"))), h("td", {}), ...profile.clusters.map((_, j) => h("td", { class: "num" }, chance(cut, j))));
  const table = h(
    "table",
    { class: "plain slices" },
    h("caption", {}, sliceName(cut)),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, sliceName(cut)), h("th", { scope: "col", class: "num" }, t("burden.records")), ...heads)),
    h("tbody", {}, ...rows, test),
  );
  const mix = cut.mix.map((name) => t(`slices.${name}`).toLowerCase()).join(", ");
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "group", "aria-label": sliceName(cut) },
    table,
    cut.mix.length ? h("p", { class: "quiet" }, t("slices.standardised", { mix })) : null,
    ...cut.notes.map((note) => h("p", { class: "quiet" }, said(note))),
  );
}

function sliceCell(profile, cut, s, j) {
  const share = cut.share[s][j];
  const text = band(profile, share, cut.counts[s][j], cut.counts[s][profile.clusters.length]);
  const range = cut.low[s][j] === null ? null : `${percent(cut.low[s][j], 1)} – ${percent(cut.high[s][j], 1)}`;
  const even = cut.standardised[s][j];
  return h(
    "td",
    { class: "num", title: range, "data-cluster": j, vars: { "--c": `var(--cluster-${j})`, "--share": share ?? 0 } },
    text,
    cut.mix.length && even !== null ? h("span", { class: "quiet" }, ` (${percent(even)})`) : null,
    h("span", { class: "meter", vars: { "--share": share ?? 0 } }),
  );
}

function chance(cut, j) {
  const [p, z] = [cut.p[j], cut.z[j]];
  if (p === null) return "–";
  const sign = z === null ? "" : z > 0 ? "↑ " : "↓ ";
  return `${sign}${p < 0.001 ? `< ${number(0.001, 3)}` : number(p, 3)}`;
}
