// What each column is: one table, in which every role can be corrected.

import { button, count, h, hasText, percent, plainTable, t } from "/page/dom.js";
import { call, handle, notify } from "./frame.js";

const ROLES = [
  "codes",
  "id",
  "patient",
  "age",
  "sex",
  "date",
  "los",
  "died",
  "readmitted",
  "cost",
  "site",
  "discharged",
  "disposition",
  "weight",
  "category",
  "number",
  "version",
  "part",
  "ignored",
];
const EVENTS = ["died", "readmitted"];
const LISTS = ["codes", "category", "number", "ignored"];

/** @typedef {ReturnType<typeof import("./features.js").featureBoxes>} Boxes */

// The table of the columns; `known` is what was understood, or why nothing was, `boxes` those of features.
/** @param {any} row @param {any} known @param {Boxes | null} boxes */
export function columns(row, known, boxes = null) {
  if (!known.columns.length) return null;
  const fixed = row.kind === "builtin" || !row.exact;
  const lines = grouped(known.columns).map((group) =>
    line(group, fixed, boxes, row.reading?.layout ?? {}),
  );
  const headers = ["column", "role", ...(boxes ? ["feature"] : []), "values", "missing", "remark"];
  return h(
    "section",
    { "aria-labelledby": "columns-title" },
    h("h2", { id: "columns-title" }, t("columns.title")),
    fixed ? null : h("p", { class: "how" }, t("columns.how")),
    boxes ? h("p", { class: "how" }, t("feature.how")) : null,
    plainTable(
      "plain tight roles",
      headers.map((key) =>
        h("th", { scope: "col", class: key === "missing" ? "num" : null }, t(`columns.${key}`)),
      ),
      lines.map((one) => one.element),
    ),
    fixed ? null : correction(row, known, lines),
  );
}

// Code columns that follow each other are one line.
function grouped(all) {
  const groups = [];
  for (const one of all) {
    const last = groups.at(-1);
    if (one.role === "codes" && last?.[0].role === "codes") last.push(one);
    else groups.push([one]);
  }
  return groups;
}

// A covariate with a role of its own goes by that, another by the name of its column.
function covariateName(one) {
  return ["category", "number"].includes(one.role) ? one.name : one.role;
}

function line(group, fixed, boxes, given) {
  const [first] = group;
  const names = group.map((one) => one.name);
  const label =
    names.length > 1
      ? t("columns.span", { first: names[0], last: names.at(-1), n: count(names.length) })
      : names[0];
  const role = h(
    "select",
    { "aria-label": t("columns.role_of", { name: label }) },
    ...ROLES.map((one) =>
      h("option", { value: one, selected: one === first.role }, t(`role.${one}`)),
    ),
  );
  // A column of deaths or readmissions also needs the values that count.
  const before = given[first.role] === names[0] ? (given[`${first.role}_values`] ?? []) : [];
  const counting = h("input", {
    type: "text",
    class: "counting",
    value: before.join(", "),
    placeholder: t("columns.counting"),
    "aria-label": t("columns.counting_of", { name: label }),
    hidden: !EVENTS.includes(first.role),
  });
  role.addEventListener("change", () => {
    counting.hidden = !EVENTS.includes(role.value);
  });
  const element = h(
    "tr",
    {},
    h("th", { scope: "row" }, label),
    h("td", {}, ...(fixed ? [t(`role.${first.role}`)] : [role, counting])),
    boxes ? h("td", {}, group.length > 1 ? null : boxes.of(covariateName(first))) : null,
    h("td", { class: "quiet" }, first.values.join(", ")),
    h("td", { class: "num" }, first.missing ? percent(first.missing) : ""),
    h("td", { class: "quiet" }, first.reason),
  );
  const values = () =>
    EVENTS.includes(role.value)
      ? counting.value
          .split(",")
          .map((part) => part.trim())
          .filter(Boolean)
      : [];
  const changed = () => role.value !== first.role || values().join() !== before.join();
  return { element, names, role, before: first.role, values, changed };
}

function correction(row, known, lines) {
  const choice = (id, options, value) =>
    h(
      "select",
      { id },
      ...options.map(([key, name]) => h("option", { value: key, selected: key === value }, name)),
    );
  const unsaid = ["", t("columns.unsaid")];
  const kind = choice(
    "fix-layout",
    [
      ...(known.layout ? [] : [unsaid]),
      ...known.layouts.map((one) => [one, t(`layout.${one}.short`)]),
    ],
    known.layout,
  );
  const system = choice(
    "fix-system",
    [
      ...(known.system in known.systems
        ? []
        : [[known.system ?? "", known.system ?? t("columns.unsaid")]]),
      ...Object.keys(known.systems).map((one) => [one, systemName(known, one)]),
    ],
    known.system,
  );
  const unit = choice(
    "fix-unit",
    ["visit", "patient"].map((one) => [one, t(`unit.${one}`)]),
    known.unit ?? "visit",
  );
  const codes = h("textarea", {
    id: "fix-codes",
    rows: 2,
    placeholder: t("columns.codes.example"),
  });
  const covariates = known.covariates ?? [];
  const shown = covariates.map((name) =>
    h("input", {
      type: "checkbox",
      value: name,
      checked: !row.outcomes || row.outcomes.includes(name),
    }),
  );
  const field = (id, name, input, how) =>
    h(
      "div",
      { class: "field" },
      h("label", { for: id }, name),
      how ? h("p", { class: "quiet" }, how) : null,
      input,
    );

  async function save() {
    const layout = corrected(row.reading.layout ?? {}, lines, listed(codes.value, known.columns));
    if (kind.value && kind.value !== known.layout) layout.kind = kind.value;
    const change = { layout };
    if (shown.some((box) => !box.checked) || row.outcomes)
      change.outcomes = shown.filter((box) => box.checked).map((box) => box.value);
    if (system.value && system.value !== known.system) change.system = system.value;
    if (unit.value !== (known.unit ?? "visit")) change.unit = unit.value;
    await readAgain(row, change);
  }

  return h(
    "div",
    { class: "correction" },
    field("fix-codes", t("columns.codes"), codes, t("columns.codes.how")),
    h(
      "div",
      { class: "row" },
      field("fix-layout", t("understood.layout"), kind),
      field("fix-system", t("understood.system"), system),
      field("fix-unit", t("understood.unit"), unit),
    ),
    shown.length
      ? h(
          "fieldset",
          {},
          h("legend", {}, t("understood.outcomes")),
          ...shown.map((box) => h("label", {}, box, ` ${outcomeName(box.value)}`)),
        )
      : null,
    h(
      "p",
      { class: "controls" },
      button(t("understood.again"), handle(save), { class: "primary" }),
      row.reading.layout
        ? button(
            t("columns.forget"),
            handle(() => readAgain(row, { layout: {} })),
          )
        : null,
    ),
  );
}

function outcomeName(name) {
  const key = `outcome.${name}`;
  return hasText(key) ? t(key) : name;
}

async function readAgain(row, change) {
  notify(t("data.reading"));
  await call("PATCH", `/api/v1/data/${row.id}`, change);
  window.location.reload();
}

// The name of a coding system in the language of the page, or its title.
export function systemName(known, system) {
  const key = `system.${system}`;
  return t(key) === key ? (known.systems[system] ?? system) : t(key);
}

// The layout given before, with the roles that changed; pasted code columns go first.
function corrected(given, lines, pasted) {
  const layout = structuredClone(given);
  const changed = lines.filter((one) => one.changed());
  const taken = new Set();
  for (const one of changed) {
    forget(layout, one.names);
    const role = one.role.value === "id" ? "record" : one.role.value;
    if (!LISTS.includes(role)) {
      if (one.names.length > 1 || taken.has(role))
        throw new Error(t("columns.twice", { role: t(`role.${one.role.value}`) }));
      taken.add(role);
      layout[role] = one.names[0];
      if (EVENTS.includes(role)) layout[`${role}_values`] = one.values();
    } else if (role !== "codes") layout[role] = [...(layout[role] ?? []), ...one.names];
  }
  if (pasted.length) layout.codes = pasted;
  else if (changed.some((one) => [one.before, one.role.value].includes("codes")))
    layout.codes = lines.filter((one) => one.role.value === "codes").flatMap((one) => one.names);
  return layout;
}

function forget(layout, names) {
  for (const [role, value] of Object.entries(layout)) {
    if (role.endsWith("_values")) continue;
    if (Array.isArray(value)) layout[role] = value.filter((name) => !names.includes(name));
    else if (names.includes(value)) {
      delete layout[role];
      delete layout[`${role}_values`];
    }
  }
}

// Names between commas, semicolons, tabs or lines, or between blanks where no name holds one.
function listed(text, all) {
  const known = all.map((one) => one.name);
  const parts = text
    .split(/[,;\t\n]/)
    .map((part) => part.trim().replace(/^(["'])(.*)\1$/, "$2"))
    .filter(Boolean);
  const apart = (part) => (known.includes(part) || /\s-\s/.test(part) ? [part] : part.split(/\s+/));
  return parts.flatMap(apart);
}
