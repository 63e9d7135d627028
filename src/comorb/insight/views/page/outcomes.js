// Outcomes per cluster: a dot and its interval, over all records and in each cluster.

import { h, hasText, number, percent, section, svg, t, term } from "./dom.js";
import { band, told } from "./data.js";

export function outcomes({ profile }) {
  if (!profile.outcomes.length) return null;
  const corrected = profile.outcomes.some((outcome) => outcome.corrected);
  return section("outcomes", h("p", { class: "quiet" }, term("interval", t("glossary.interval.name")), corrected ? ` ${t("outcomes.corrected")}` : null), h("div", { class: "figures" }, ...profile.outcomes.flatMap((outcome) => figures(profile, outcome))));
}

export function figures(profile, outcome) {
  return outcome.values
    .map((value, v) => (outcome.estimate[v].every((x) => x === null) ? null : figure(profile, outcome, value, v)))
    .filter(Boolean);
}

function figure(profile, outcome, value, v) {
  const share = outcome.kind === "share";
  const shown = outcome.corrected ?? outcome;
  const highs = shown.high[v].filter((x) => x !== null);
  const lows = shown.low[v].filter((x) => x !== null);
  const end = Math.max(...highs, share ? 0.02 : 0) * 1.05;
  const start = share ? 0 : Math.min(0, ...lows) || spanStart(lows, end);
  const at = (x) => (100 * (x - start)) / (end - start || 1);
  const all = profile.clusters.length;
  const order = [all, ...profile.clusters.keys()];
  const show = (x) => (share ? percent(x, 1) : number(x, 1));
  const rows = order.map((place) => {
    const estimate = shown.estimate[v][place];
    const [low, high] = [shown.low[v][place], shown.high[v][place]];
    const naive = outcome.estimate[v][place];
    const differs = outcome.corrected && place !== all && low !== null && (naive < low || naive > high);
    const beside = differs ? h("span", { class: "differs", title: t("outcomes.naive", { x: show(naive) }) }, "*") : "";
    const marks = place === all ? { class: "overall" } : { "data-cluster": place, vars: { "--c": `var(--cluster-${place})` } };
    const range = low === null ? "" : `${show(low)} – ${show(high)}`;
    return h(
      "tr",
      marks,
      h("th", { scope: "row", title: place === all ? null : profile.clusters[place].name }, place === all ? t("all") : h("span", { class: "chip" }, String(profile.clusters[place].number))),
      h("td", { class: "dot" }, estimate === null ? "" : dot(at(estimate), at(low ?? estimate), at(high ?? estimate))),
      h("td", { class: "num", title: t("outcomes.known", { n: told(profile, outcome.known[place]) }) }, share ? band(profile, estimate, outcome.counts[v][place], outcome.known[place], 1) : show(estimate), beside),
      h("td", { class: "num quiet" }, range),
    );
  });
  return h("table", { class: "figure" }, h("caption", {}, title(outcome, value)), h("tbody", {}, ...rows));
}

// A scale that leaves out an empty half, as for ages from 70 to 82, and says so by its numbers.
function spanStart(lows, end) {
  const least = Math.min(...lows);
  return least > end / 2 ? least - (end - least) * 0.3 : 0;
}

function title(outcome, value) {
  const name = columnName(outcome.name);
  if (outcome.kind === "number") return `${name}: ${t(`outcomes.${value}`)}`;
  return isYes(outcome, value) ? name : `${name}: ${valueName(value)}`;
}

// What a value of a column is called on the page.
export function valueName(value) {
  const key = `value.${value.toLowerCase()}`;
  return hasText(key) ? t(key) : value.replaceAll("_", " ");
}

// What a column is called on the page: by its role, or by its own name made plain.
export function columnName(name) {
  const key = `outcome.${name}`;
  const plain = name.replaceAll("_", " ");
  return hasText(key) ? t(key) : plain.charAt(0).toUpperCase() + plain.slice(1);
}

function isYes(outcome, value) {
  return outcome.values.length === 1 && ["true", "1", "yes", "y"].includes(value.toLowerCase());
}

function dot(x, low, high) {
  return svg(
    "svg",
    { viewBox: "0 0 100 12", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("line", { class: "axis", x1: 0, x2: 100, y1: 6, y2: 6 }),
    svg("line", { class: "range", x1: low, x2: high, y1: 6, y2: 6 }),
    svg("line", { class: "point", x1: x, x2: x, y1: 2, y2: 10 }),
  );
}
