// Findings: one plain sentence for each thing that a cluster surely has most of, and nothing else.

import { h, hasText, number, percent, t } from "./dom.js";
import { shownOf } from "./scale.js";

export const USED_FIRST = ["los", "cost", "visits"];
const RATED = ["died", "readmitted", "age"];

// What a record of these clusters is: a patient, a visit of one, or just a record.
export function unitOf(profile) {
  const used = profile.burden;
  if (used?.columns.includes("visits")) return "patients";
  return used?.patients.length ? "visits" : "records";
}

export function usedName(name) {
  return hasText(`burden.${name}`) ? t(`burden.${name}`) : name.replaceAll("_", " ");
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

// The sentences, and a line with what is too close to name one cluster.
export function findings(profile) {
  const used = profile.burden;
  const found = USED_FIRST.filter((name) => used?.columns.includes(name)).flatMap((name) => usage(profile, name));
  const rated = RATED.map((name) => [name, figureOf(profile, name)]).filter(([, figure]) => figure);
  const close = [];
  for (const [name, figure] of rated) {
    const place = standsOut(profile, figure.low, figure.high);
    if (place === null) close.push(t(`find.${name}.short`));
    else found.push([place, t(`find.${name}`, { ...clusterWords(profile, place), ...figureWords(figure, place) })]);
  }
  if (!found.length && !close.length) return null;
  const items = found.map(([place, text]) => h("li", { "data-cluster": place, vars: { "--c": `var(--cluster-${place})` } }, text));
  return [
    h("ul", { class: "findings" }, ...items),
    close.length && profile.clusters.length > 1 ? h("p", { class: "quiet" }, t("find.close", { names: close.join(", ") })) : null,
  ];
}

function clusterWords(profile, place) {
  const { number: own, name } = profile.clusters[place];
  return { number: own, name };
}

function figureWords(figure, place) {
  const show = (x) => (figure.kind === "share" ? percent(x, 1) : number(x, 1));
  const all = figure.estimate.length - 1;
  return { x: show(figure.estimate[place]), low: show(figure.low[place]), high: show(figure.high[place]), all: show(figure.estimate[all]) };
}

// The cluster whose interval lies above those of all others, or null.
function standsOut(profile, low, high) {
  const places = [...profile.clusters.keys()];
  if (places.length < 2 || places.some((j) => low[j] === null || high[j] === null)) return null;
  const top = places.reduce((best, j) => (low[j] > low[best] ? j : best));
  return places.every((j) => j === top || high[j] < low[top]) ? top : null;
}

// The cluster that surely uses most, and the one that uses most beyond its size.
function usage(profile, name) {
  const used = profile.burden;
  const m = used.columns.indexOf(name);
  const places = [...profile.clusters.keys()].filter((j) => used.share[j] && used.shares[m][j] > 0);
  if (places.length < 2) return [];
  const mean = profile.outcomes.find((one) => one.name === name && one.kind === "number");
  const ends = (which) => profile.clusters.map((_, j) => (mean && mean.estimate[0][j] > 0 ? (used.totals[m][j] * mean[which][0][j]) / mean.estimate[0][j] : used.totals[m][j]));
  const most = standsOut(profile, ends("low"), ends("high"));
  const beyond = places.reduce((best, j) => (used.shares[m][j] / used.share[j] > used.shares[m][best] / used.share[best] ? j : best));
  const all = profile.clusters.length;
  const sure = mean ? mean.low[0][beyond] > mean.high[0][all] : used.shares[m][beyond] > 1.1 * used.share[beyond];
  const sentence = (key, j) => [j, t(key, { ...clusterWords(profile, j), records: percent(used.share[j]), unit: t(`find.unit.${unitOf(profile)}`), share: percent(used.shares[m][j]), what: usedName(name) })];
  const found = most === null ? [] : [sentence("find.most", most)];
  if (sure && beyond !== most) found.push(sentence("find.use", beyond));
  return found;
}
