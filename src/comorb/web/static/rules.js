// The definition of a run's cohort in words, with the names of its codes.

import { t } from "/page/dom.js";
import { get } from "./frame.js";

// The names of some codes; those that are not known, or not ours to see, stay codes.
export async function namesOf(run, codes) {
  const names = {};
  for (const code of codes) {
    const query = new URLSearchParams([["q", code], ...(run.rules.level ?? []).map((one) => ["level", one])]);
    const hits = await get(`/api/v1/data/${run.data}/codes?${query}`).catch(() => []);
    names[code] = hits.find((hit) => hit.code === code)?.label;
  }
  return names;
}

export function described(run, names = {}) {
  const { rules } = run;
  const listed = (codes) => codes.map((code) => (names[code] ? `${names[code]} (${code})` : code)).join(", ");
  const parts = [];
  const add = (key, values) => parts.push(t(`rule.${key}`, values));
  if (run.within) add("within", { n: run.within.cluster });
  if (rules.having?.length) add("having", { codes: listed(rules.having) });
  if (rules.without?.length) add("without", { codes: listed(rules.without) });
  if (rules.age) add("age", { from: rules.age[0] ?? "", to: rules.age[1] ?? "" });
  if (rules.sex?.length) add("sex", { values: rules.sex.join(", ") });
  if (rules.dates) add("dates", { from: rules.dates[0] ?? "", to: rules.dates[1] ?? "" });
  if (rules.at_least > 1) add("at_least", { n: rules.at_least });
  if (rules.level) add("level", { level: rules.level.map((one) => t(`level.${one}`)).join(" + ") });
  if (run.merge) add("merge", { a: run.merge[0], b: run.merge[1] });
  if (run.moved) add("moved", { n: run.moved });
  return parts;
}

export function leftOut(run) {
  return run.rules.drop_codes?.length ? [t("rule.left_out", { codes: run.rules.drop_codes.join(", ") })] : [];
}
