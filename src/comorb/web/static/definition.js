// The definition of a run's cohort in words, with the names of its codes.

import { t } from "/page/dom.js";
import { columnName } from "/page/outcomes.js";
import { namesOfCodes } from "./codes.js";
import { may } from "./frame.js";
import { RULES, queryOf } from "./cohort_rules.js";
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
  const parts = [];
  const add = (key, values) => parts.push(t(`rule.${key}`, values));
  const shown = {
    codes: (code) => (names[code] ? `${names[code]} (${code})` : code),
    level: (one) => t(`level.${one}`),
    scores: (one) => t(`score.${one}`),
    features: (word) => columnName(word.split("=")[0]),
  };
  if (run.within) add(run.within.cluster ? "within" : "region", { n: run.within.cluster });
  for (const { name, form } of RULES) {
    const value = run.rules[name];
    if (!value || value === 1 || value.length === 0 || name === "drop_codes") continue;
    if (form === "bounds" || form === "days")
      add(name, { from: value[0] ?? "", to: value[1] ?? "" });
    else if (Array.isArray(value))
      add(name, {
        list: value.map(shown[name] ?? shown[form] ?? String).join(name === "level" ? " + " : ", "),
      });
    else add(name, { n: value });
  }
  if (run.split) add("split", { a: run.split[0], n: run.split[1] });
  if (run.merge) add("merge", { a: run.merge[0], b: run.merge[1] });
  if (run.moved !== undefined && run.moved !== 0) add("moved", { n: recordCount(run.moved) });
  return parts;
}

// The address of a cohort, which the form for choosing it reads.
export function addressOf(data, rules, k) {
  const query = queryOf(rules);
  if (k !== "auto") query.set("k", k);
  return `/data/${data}?${query}`;
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
