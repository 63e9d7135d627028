// The numbers of a profile as its pages show them; intervals, rankings and constants come with it.

import { count, percent } from "./dom.js";

/** A cluster's colour follows from its number. @param {Palette} palette @param {Cluster} cluster */
export function colourOf(palette, cluster) {
  return palette.clusters[(cluster.number - 1) % palette.clusters.length];
}

/**
 * The n most relevant codes of a cluster, as places in profile.codes, by
 * λ·log μ + (1 − λ)·log(μ / Σ μ ω); which codes can be relevant comes with the profile.
 * @param {Profile} profile
 * @param {number} cluster
 * @param {number} lambda
 * @param {number} n
 */
export function relevantCodes(profile, cluster, lambda, n) {
  const log = (x) => Math.log(Math.max(x, profile.page.tiny));
  const score = (i) => log(profile.means[cluster][i]) - (1 - lambda) * log(profile.expected[i]);
  return profile.page.relevant[cluster]
    .map((i) => ({ i, score: score(i) }))
    .sort((a, b) => b.score - a.score || a.i - b.i)
    .slice(0, n)
    .map(({ i }) => i);
}

// The heat-map's running counts per column, so that any stretch of lines is two look-ups.
/** @param {Heatmap} heatmap */
export function readHeatmap(heatmap) {
  const width = heatmap.columns.length;
  const stride = Math.ceil(width / 8);
  const total = heatmap.lines.reduce((sum, n) => sum + n, 0);
  const packed = atob(heatmap.bits);
  const heaped = new Uint32Array((total + 1) * width);
  for (let line = 0; line < total; line += 1) {
    for (let column = 0; column < width; column += 1) {
      const byte = packed.charCodeAt(line * stride + (column >> 3));
      const bit = (byte >> (7 - (column & 7))) & 1;
      heaped[(line + 1) * width + column] = heaped[line * width + column] + bit;
    }
  }
  const edges = [0];
  for (const lines of heatmap.lines) edges.push(edges[edges.length - 1] + lines);
  const density = (column, from, to) =>
    (heaped[to * width + column] - heaped[from * width + column]) / Math.max(to - from, 1);
  return { width, total, edges, density };
}

/** A number of records as text: of a protected profile, "< 11" for few. @param {Profile} profile */
export function countText(profile, value) {
  return value === null && profile.min_cell ? `< ${profile.min_cell}` : count(value);
}

// A share as text: in a protected profile a band, such as "< 1%", where few have it or few do not.
/** @param {Profile} profile */
export function shareBand(profile, share, part, whole, digits = 0) {
  if (!profile.min_cell || !whole) return percent(share, digits);
  const few = (profile.min_cell - 1) / whole;
  if (share === null) return `< ${percent(Math.min(Math.ceil(100 * few), 100) / 100)}`;
  const rest = whole - part;
  if (rest > 0 && rest < profile.min_cell)
    return `> ${percent(Math.max(Math.floor(100 * (1 - few)), 0) / 100)}`;
  return percent(share, digits);
}

// The share of a cluster, or of all records where that is null, that has a code.
/** @param {Profile} profile @param {number | null} cluster */
export function shareText(profile, cluster, code, digits = 0) {
  if (cluster === null)
    return shareBand(
      profile,
      profile.overall[code],
      profile.totals[code],
      profile.source.records,
      digits,
    );
  return shareBand(
    profile,
    profile.prevalence[cluster][code],
    profile.counts[cluster][code],
    profile.clusters[cluster].size,
    digits,
  );
}
