// Shares of the clusters within slices, drawn: stacked bars, a line for each cluster, dots with intervals.

import { button, clusterChip, h, ofCluster, percent, svg, t } from "./dom.js";
import { countText } from "./data.js";
import { dot, scaleOf } from "./scale.js";

const APART = 8; // percent of the height between the numbers of two lines
const WRITTEN = 0.07; // the least share that is written on its part of a bar

// A bar for each slice, parted by clusters; its label opens the slice where that can be.
/** @param {Profile} profile @param {Slices} cut @param {any} part2 @param {any} open @param {any} current */
export function stackedBars(profile, cut, { share }, open, current) {
  const all = profile.clusters.length;
  const rows = cut.labels.map((label, s) => {
    const name = open
      ? button(label, () => open(label === current ? null : label), {
          class: "slice",
          "aria-pressed": String(label === current),
        })
      : label;
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, name),
      h("td", { class: "num quiet" }, countText(profile, cut.counts[s][all])),
      h("td", { class: "stack" }, stack(profile, share[s])),
    );
  });
  const keys = profile.clusters.map((cluster, j) =>
    h("li", ofCluster(j), clusterChip(cluster), ` ${cluster.name}`),
  );
  return h(
    "div",
    { class: "stacked" },
    h("ul", { class: "legend" }, ...keys),
    h(
      "table",
      { class: "stacks" },
      h("caption", { class: "unseen" }, t("slices.stacked")),
      h("tbody", {}, ...rows),
    ),
  );
}

/** @param {Profile} profile */
function stack(profile, shares) {
  const known = shares.reduce((sum, x) => sum + (x ?? 0), 0);
  const parts = profile.clusters.map((cluster, j) => {
    const x = shares[j] ?? 0;
    const title = `${cluster.number} ${cluster.name}: ${percent(shares[j])}`;
    return h(
      "span",
      {
        class: "part",
        title,
        "data-cluster": j,
        vars: { "--c": `var(--cluster-${j})`, "--share": known > 1 ? x / known : x },
      },
      x >= WRITTEN ? h("span", {}, percent(x)) : null,
    );
  });
  return known
    ? h("span", { class: "parts" }, ...parts)
    : h("span", { class: "quiet" }, t("hidden"));
}

// Dots with intervals of one cluster over the slices, on one axis for all clusters.
/** @param {Profile} profile @param {Slices} cut @param {any} part2 */
export function dotFigures(profile, cut, { share, low, high }) {
  const { at, ends } = scaleOf(
    share.map((_, s) => ({ estimate: share[s], low: low[s], high: high[s] })),
    "share",
  );
  const tables = profile.clusters.map((cluster, j) => {
    const rows = cut.labels.map((label, s) => {
      const x = share[s][j];
      const range =
        low[s][j] === null ? "" : `${percent(low[s][j], 1)} – ${percent(high[s][j], 1)}`;
      return h(
        "tr",
        ofCluster(j),
        h("th", { scope: "row", title: label }, h("span", { class: "name" }, label)),
        h(
          "td",
          { class: "dot" },
          x === null ? "" : dot(at(x), at(low[s][j] ?? x), at(high[s][j] ?? x)),
        ),
        h("td", { class: "num" }, percent(x)),
        h("td", { class: "num quiet" }, range),
      );
    });
    const axis = h(
      "tr",
      { class: "ends quiet", "aria-hidden": "true" },
      h("td", {}),
      h("td", {}, h("span", {}, percent(ends[0])), h("span", {}, percent(ends[1]))),
      h("td", { colspan: 2 }),
    );
    return h(
      "table",
      { class: "figure" },
      ownCaption(cluster, j),
      h("tbody", {}, ...rows),
      h("tfoot", {}, axis),
    );
  });
  return h("div", { class: "figures" }, ...tables);
}

/** @param {Cluster} cluster */
function ownCaption(cluster, j) {
  return h(
    "caption",
    { vars: { "--c": `var(--cluster-${j})` } },
    clusterChip(cluster),
    ` ${cluster.name}`,
  );
}

// A line for each cluster over time: all in one figure, or each with its interval in one of its own.
/** @param {Profile} profile @param {Slices} cut */
export function lineFigures(profile, cut, shares, together) {
  const { ends } = scaleOf(
    shares.share.map((_, s) => ({
      estimate: shares.share[s],
      low: shares.low[s],
      high: shares.high[s],
    })),
    "share",
  );
  if (together)
    return h(
      "figure",
      { class: "trend whole" },
      h("figcaption", {}, t("slices.lines")),
      plot(cut, shares, [...profile.clusters.keys()], ends[1], profile),
      timeAxis(cut),
    );
  const each = profile.clusters.map((cluster, j) =>
    h(
      "figure",
      { class: "trend", "data-cluster": j },
      h(
        "figcaption",
        { vars: { "--c": `var(--cluster-${j})` } },
        clusterChip(cluster),
        ` ${cluster.name}`,
      ),
      plot(cut, shares, [j], ends[1], profile),
      timeAxis(cut),
    ),
  );
  return h("div", { class: "figures" }, ...each);
}

/** @param {Slices} cut @param {any} part1 @param {any} clusters @param {any} end @param {Profile} profile */
function plot(cut, { share, low, high }, clusters, end, profile) {
  const last = Math.max(cut.labels.length - 1, 1);
  const x = (s) => (100 * s) / last;
  const y = (value) => 100 - (100 * value) / end;
  const lines = clusters.flatMap((j) => {
    const places = cut.labels.map((_, s) => s).filter((s) => share[s][j] !== null);
    const path = places.map((s, i) => `${i ? "L" : "M"}${x(s)} ${y(share[s][j])}`).join("");
    const banded = places.filter((s) => low[s][j] !== null);
    const area =
      banded.length > 1 && clusters.length === 1
        ? `${banded.map((s, i) => `${i ? "L" : "M"}${x(s)} ${y(high[s][j])}`).join("")}${[...banded]
            .reverse()
            .map((s) => `L${x(s)} ${y(low[s][j])}`)
            .join("")}Z`
        : null;
    const own = ofCluster(j);
    return [
      area ? svg("path", { class: "between", d: area, ...own }) : null,
      svg(
        "path",
        { class: "line", d: path, ...own },
        svg("title", {}, `${profile.clusters[j].number} ${profile.clusters[j].name}`),
      ),
    ].filter(Boolean);
  });
  const grid = [0, 0.5, 1].map((part) =>
    svg("line", { class: "axis", x1: 0, x2: 100, y1: 100 * part, y2: 100 * part }),
  );
  const drawing = svg(
    "svg",
    { viewBox: "0 0 100 100", preserveAspectRatio: "none", "aria-hidden": "true" },
    ...grid,
    ...lines,
  );
  const scale = h(
    "span",
    { class: "scale quiet" },
    h("span", {}, percent(end)),
    h("span", {}, percent(end / 2)),
    h("span", {}, percent(0)),
  );
  return h(
    "div",
    { class: "plot" },
    scale,
    h(
      "div",
      { class: "lines" },
      drawing,
      ...(clusters.length > 1 ? lineEnds(cut, share, clusters, y, profile) : []),
    ),
  );
}

// The number of each cluster where its line ends, those that would lie on each other moved apart.
/** @param {Slices} cut @param {Profile} profile */
function lineEnds(cut, share, clusters, y, profile) {
  const ends = clusters
    .map((j) => ({ j, value: share.findLast((row) => row[j] !== null)?.[j] }))
    .filter(({ value }) => value !== undefined)
    .map(({ j, value }) => ({ j, top: y(value) }))
    .sort((a, b) => b.top - a.top);
  ends.forEach((end, i) => {
    if (i && ends[i - 1].top - end.top < APART) end.top = ends[i - 1].top - APART;
  });
  return ends.map(({ j, top }) =>
    h(
      "span",
      { class: "end", "data-cluster": j, vars: { "--c": `var(--cluster-${j})`, "--y": `${top}%` } },
      String(profile.clusters[j].number),
    ),
  );
}

/** @param {Slices} cut */
function timeAxis(cut) {
  const middle = Math.floor((cut.labels.length - 1) / 2);
  const shown = [...new Set([0, middle, cut.labels.length - 1])];
  return h("p", { class: "times quiet" }, ...shown.map((s) => h("span", {}, cut.labels[s])));
}
