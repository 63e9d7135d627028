// One scale for figures that are compared: a dot and its interval, and where the axis begins and ends.

import { svg } from "./dom.js";

const EVENTS = ["died", "readmitted"];

// An outcome of each cluster and of all at the end, as counted; `better` is corrected, where that is known.
/** @param {Profile} profile */
export function figureOf(profile, name) {
  const outcome = profile.outcomes.find(
    (one) => one.name === name && (one.kind === "number" || one.values.length === 1),
  );
  const better = outcome ? correctedOf(outcome, 0) : null;
  const used = profile.burden;
  const r = used?.rates.indexOf(name) ?? -1;
  if (used && r >= 0)
    return {
      kind: "share",
      estimate: used.rate[r],
      low: used.low[r],
      high: used.high[r],
      counts: used.rate_counts[r],
      known: used.rate_known[r],
      better,
    };
  // Deaths and readmissions are rates only where every value is understood, which is where they are counted.
  if (!outcome || (used && EVENTS.includes(name))) return null;
  const { kind, estimate, low, high, known } = outcome;
  return {
    kind,
    estimate: estimate[0],
    low: low[0],
    high: high[0],
    counts: kind === "share" ? outcome.counts[0] : null,
    known,
    better,
  };
}

// The corrected figures of a value, not below 0 where no record is; null where there are none.
/** @param {Outcome} outcome */
export function correctedOf(outcome, v) {
  if (!outcome.corrected || outcome.values[v] === "median") return null;
  const above = outcome.estimate[v].every((x) => x === null || x >= 0);
  return outcome.corrected.estimate[v].map((x) => (x === null || !above ? x : Math.max(x, 0)));
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
    {
      class: "dot-line",
      viewBox: "0 0 100 12",
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    },
    svg("line", { class: "axis", x1: 0, x2: 100, y1: 6, y2: 6 }),
    svg("line", { class: "range", x1: low, x2: high, y1: 6, y2: 6 }),
    svg("line", { class: "point", x1: x, x2: x, y1: 2, y2: 10 }),
  );
}
