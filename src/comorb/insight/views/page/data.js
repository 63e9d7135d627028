// The profile's numbers, as comorb.insight.profile works them out; a number that isn't told is null.

import { count, percent } from "./dom.js";

const Z = 1.959964;
const FLOOR = 0.02;
const FEWEST = 5;
const TINY = 1e-12;
const MORE = 1.1; // times as common as over all a sign of a feature is at least, to be relevant

export function wilson(share, n) {
  if (share === null || n === null) return [null, null];
  const square = Z * Z;
  const centre = share * n + square / 2;
  const half = Z * Math.sqrt(share * (1 - share) * n + square / 4);
  const low = (centre - half) / (n + square);
  const high = (centre + half) / (n + square);
  return [Math.min(Math.max(low, 0), share), Math.max(Math.min(high, 1), share)];
}

// The 95% interval of a code's share in a cluster; profiles of earlier versions have none of their own.
export function interval(profile, cluster, code) {
  if (profile.low) return [profile.low[cluster][code], profile.high[cluster][code]];
  return wilson(profile.prevalence[cluster][code], profile.clusters[cluster].effective);
}

export function isUniversal(profile, code) {
  return profile.totals[code] === profile.source.records;
}

// How many of the profile's codes are codes; those behind them are signs of features.
export function codeCount(profile) {
  return Math.min(profile.codes.length, ...(profile.features ?? []).flatMap((one) => one.columns));
}

// A cluster's colour follows from its number.
export function colourOf(palette, cluster) {
  return palette.clusters[(cluster.number - 1) % palette.clusters.length];
}

// The n most frequent codes, without those of every record; signs of features where there are no codes.
export function commonCodes(profile, n) {
  const codes = codeCount(profile) || profile.codes.length;
  return profile.codes
    .slice(0, codes)
    .map((_, i) => i)
    .filter((i) => profile.overall[i] > 0 && !isUniversal(profile, i))
    .sort((a, b) => profile.overall[b] - profile.overall[a] || a - b)
    .slice(0, n);
}

// λ·log μ + (1 − λ)·log(μ / Σ μ ω)
export function relevance(profile, cluster, code, lambda) {
  const mean = profile.means[cluster][code];
  if (mean === null || profile.expected[code] === null) return null;
  const expected = Math.log(Math.max(profile.expected[code], TINY));
  return Math.log(Math.max(mean, TINY)) - (1 - lambda) * expected;
}

// The n most relevant codes of a cluster, as places in profile.codes; a protected profile has their order.
export function topCodes(profile, cluster, lambda, n) {
  if (profile.ranks?.length) {
    const ranked = profile.ranks[Math.round(lambda * (profile.ranks.length - 1))][cluster];
    return ranked.filter((i) => (profile.low[cluster][i] ?? 0) >= FLOOR).slice(0, n);
  }
  const codes = codeCount(profile);
  return profile.codes
    .map((_, i) => ({ i, score: relevance(profile, cluster, i, lambda) }))
    .filter(({ i, score }) => {
      if (score === null || isUniversal(profile, i) || profile.counts[cluster][i] < FEWEST) return false;
      const [low] = interval(profile, cluster, i);
      return low !== null && low >= FLOOR && (i < codes || low >= MORE * profile.overall[i]);
    })
    .sort((a, b) => b.score - a.score || a.i - b.i)
    .slice(0, n)
    .map(({ i }) => i);
}

// The heat-map's running counts per column, so that any stretch of lines is two look-ups.
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

// A number of records as text: of a protected profile, "< 11" for few.
export function told(profile, value) {
  return value === null && profile.min_cell ? `< ${profile.min_cell}` : count(value);
}

// A share as text: in a protected profile a band, such as "< 1%", where few have it or few do not.
export function band(profile, share, part, whole, digits = 0) {
  if (!profile.min_cell || !whole) return percent(share, digits);
  const few = (profile.min_cell - 1) / whole;
  if (share === null) return `< ${percent(Math.min(Math.ceil(100 * few), 100) / 100)}`;
  const rest = whole - part;
  if (rest > 0 && rest < profile.min_cell) return `> ${percent(Math.max(Math.floor(100 * (1 - few)), 0) / 100)}`;
  return percent(share, digits);
}

// The share of a cluster, or of all records where that is null, that has a code.
export function shareText(profile, cluster, code, digits = 0) {
  if (cluster === null) return band(profile, profile.overall[code], profile.totals[code], profile.source.records, digits);
  return band(profile, profile.prevalence[cluster][code], profile.counts[cluster][code], profile.clusters[cluster].size, digits);
}
