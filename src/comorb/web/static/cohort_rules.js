// The rules of a cohort as `CohortSpec` declares them, and how they are written in an address.

import { find } from "/page/dom.js";

/** @type {{ name: string, form: string, usual: any, coding: boolean }[]} */
export const RULES = JSON.parse(find("#frame").dataset.rules ?? "[]");

// The two ends of bounds: age_from and age_to, or date_from of dates.
export function endsOf(name) {
  return ["from", "to"].map((end) => `${name.replace(/s$/, "")}_${end}`);
}

// The rules that differ from their defaults, as a query.
export function queryOf(rules) {
  const query = new URLSearchParams();
  for (const { name, form, usual } of RULES) {
    const value = rules[name];
    if (!value || JSON.stringify(value) === JSON.stringify(usual)) continue;
    if (form === "bounds" || form === "days") {
      const ends = endsOf(name);
      value.forEach((end, i) => end !== null && query.set(ends[i], end));
    } else if (Array.isArray(value)) value.forEach((one) => query.append(name, one));
    else query.set(name, value === true ? "1" : value);
  }
  return query;
}

// The rules that a query holds.
export function rulesIn(query) {
  const found = {};
  for (const { name, form } of RULES) {
    const all = query.getAll(name);
    const ends = endsOf(name).map((end) => query.get(end));
    if (form === "bounds" && ends.some(Boolean))
      found[name] = ends.map((end) => (end ? Number(end) : null));
    else if (form === "days" && ends.some(Boolean)) found[name] = ends.map((end) => end || null);
    else if (all.length && (form === "list" || form === "codes")) found[name] = all;
    else if (all.length)
      found[name] = { flag: () => true, number: () => Number(all[0]) }[form]?.() ?? all[0];
  }
  return found;
}

// Those of the rules that decide which codes there are.
export function codingOf(rules) {
  return Object.fromEntries(
    RULES.filter((rule) => rule.coding && rules[rule.name]).map(({ name }) => [name, rules[name]]),
  );
}
