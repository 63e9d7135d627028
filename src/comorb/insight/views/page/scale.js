// One scale for figures that are compared: a dot and its interval, and where the axis begins and ends.

import { svg } from "./dom.js";

// The figures of an outcome to show: corrected where that is known, and not below 0 where no record is.
export function shownOf(outcome) {
  if (!outcome.corrected) return outcome;
  const above = outcome.estimate.every((row) => row.every((x) => x === null || x >= 0));
  const kept = (rows) => (above ? rows.map((row) => row.map((x) => (x === null ? null : Math.max(x, 0)))) : rows);
  const { estimate, low, high } = outcome.corrected;
  return { estimate: kept(estimate), low: kept(low), high: kept(high) };
}

// An outcome of each cluster and of all at the end: corrected where that is known, or the plain rate.
export function figureOf(profile, name) {
  const outcome = profile.outcomes.find((one) => one.name === name);
  if (outcome && (outcome.kind === "number" || outcome.values.length === 1)) {
    const { estimate, low, high } = shownOf(outcome);
    const counts = outcome.kind === "share" ? outcome.counts[0] : null;
    return { kind: outcome.kind, estimate: estimate[0], low: low[0], high: high[0], counts, known: outcome.known, corrected: Boolean(outcome.corrected) };
  }
  const used = profile.burden;
  const r = used ? used.rates.indexOf(name) : -1;
  if (r < 0) return null;
  return { kind: "share", estimate: used.rate[r], low: used.low[r], high: used.high[r], counts: used.rate_counts[r], known: used.rate_known[r], corrected: false };
}

// From 0, but for numbers that lie far from it, such as ages from 70 to 82.
export function scaleOf(figures, kind) {
  const known = (which) => figures.flatMap((one) => one[which]).filter((x) => x !== null);
  const highs = [...known("high"), ...known("estimate")];
  const lows = [...known("low"), ...known("estimate")];
  const end = Math.max(...highs, kind === "share" ? 0.02 : 0) * 1.05;
  const least = Math.min(...lows);
  const far = kind !== "share" && least > end / 2;
  const start = kind === "share" ? 0 : far ? least - (end - least) * 0.3 : Math.min(0, least);
  return { at: (x) => (100 * (x - start)) / (end - start || 1), ends: [start, end] };
}

export function dot(x, low, high) {
  return svg(
    "svg",
    { class: "dot-line", viewBox: "0 0 100 12", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("line", { class: "axis", x1: 0, x2: 100, y1: 6, y2: 6 }),
    svg("line", { class: "range", x1: low, x2: high, y1: 6, y2: 6 }),
    svg("line", { class: "point", x1: x, x2: x, y1: 2, y2: 10 }),
  );
}
