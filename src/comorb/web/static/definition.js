// The definition of a run's cohort in words, with the names of its codes.

import { t } from "/page/dom.js";
import { columnName } from "/page/outcomes.js";
import { namesOfCodes } from "./codes.js";
import { may } from "./frame.js";
import { recordCount } from "./view.js";

// The names of some codes, from the clusters or else from the data; those not ours to see stay codes.
/** @param {Run} run @param {Profile} profile */
export async function nameCodes(run, profile, codes) {
  const names = Object.fromEntries(
    codes.map((code) => [code, profile.labels[profile.codes.indexOf(code)]]),
  );
  const others = codes.filter((code) => !names[code]);
  return may("analyst")
    ? { ...names, ...(await namesOfCodes(run.data, others, run.rules).catch(() => ({}))) }
    : names;
}

/** @param {Run} run */
export function describeRules(run, names = {}) {
  const { rules } = run;
  const listed = (codes) =>
    codes.map((code) => (names[code] ? `${names[code]} (${code})` : code)).join(", ");
  const parts = [];
  const add = (key, values) => parts.push(t(`rule.${key}`, values));
  if (run.within) add(run.within.cluster ? "within" : "region", { n: run.within.cluster });
  if (rules.having?.length) add("having", { codes: listed(rules.having) });
  if (rules.without?.length) add("without", { codes: listed(rules.without) });
  if (rules.age) add("age", { from: rules.age[0] ?? "", to: rules.age[1] ?? "" });
  if (rules.sex?.length) add("sex", { values: rules.sex.join(", ") });
  if (rules.dates) add("dates", { from: rules.dates[0] ?? "", to: rules.dates[1] ?? "" });
  if (rules.at_least > 1) add("at_least", { n: rules.at_least });
  if (rules.code_map) add("code_map");
  if (rules.chronic) add("chronic");
  if (rules.scores?.length)
    add("scores", { scores: rules.scores.map((one) => t(`score.${one}`)).join(", ") });
  if (rules.features?.length)
    add("features", {
      names: rules.features.map((word) => columnName(word.split("=")[0])).join(", "),
    });
  if (rules.level) add("level", { level: rules.level.map((one) => t(`level.${one}`)).join(" + ") });
  if (run.split) add("split", { a: run.split[0], n: run.split[1] });
  if (run.merge) add("merge", { a: run.merge[0], b: run.merge[1] });
  if (run.moved !== undefined && run.moved !== 0) add("moved", { n: recordCount(run.moved) });
  return parts;
}

// The address of a cohort, which the form for choosing it reads.
export function addressOf(data, rules, k) {
  const address = new URLSearchParams();
  for (const name of ["having", "without", "drop_codes", "sex", "scores", "features"])
    for (const one of rules[name] ?? []) address.append(name, one);
  for (const [name, [from, to]] of [
    ["age", rules.age ?? []],
    ["date", rules.dates ?? []],
  ]) {
    if (from ?? false) address.set(`${name}_from`, from);
    if (to ?? false) address.set(`${name}_to`, to);
  }
  if (rules.at_least) address.set("at_least", rules.at_least);
  if (rules.level && rules.level[0] !== "category") address.set("level", rules.level[0]);
  if (rules.code_map) address.set("code_map", rules.code_map);
  if (rules.chronic) address.set("chronic", "1");
  if (k !== "auto") address.set("k", k);
  return `/data/${data}?${address}`;
}

/** @param {Run} run */
export function facts(run) {
  return t("runs.facts", { records: recordCount(run.records), clusters: run.clusters });
}

/** @param {Run} run */
export function leftOut(run) {
  return run.rules.drop_codes?.length
    ? [t("rule.left_out", { codes: run.rules.drop_codes.join(", ") })]
    : [];
}
