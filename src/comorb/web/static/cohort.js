// Choosing the cohort: which records, which codes, how many clusters. The address holds it all.

import { button, count, h, t } from "/page/dom.js";
import { columnName } from "/page/outcomes.js";
import { namesOfCodes, picker } from "./codes.js";
import { call, frame, handle, notify } from "./frame.js";
import { codeMapField } from "./code_map.js";
import { addressOf } from "./definition.js";
import { savedCohorts } from "./saved.js";
import { recordCount } from "./view.js";

const LEVELS = ["category", "full", "group", "chapter", "common"];

// `boxes` are those of the columns that are features, which may stand in the table of the columns.
export async function cohortForm(row, boxes) {
  const { about } = row;
  const wanted = new URLSearchParams(window.location.search);
  const text = (name, attributes = {}) =>
    h("input", { name, value: wanted.get(name) ?? "", input: changed, ...attributes });
  const levels = LEVELS.map((level) =>
    h("option", { value: level, selected: level === wanted.get("level") }, t(`levels.${level}`)),
  );
  const level = h("select", { id: "level", change: recode }, ...levels);
  const own = codeMapField(row, wanted.get("code_map") ?? "", recode);
  const chronic = h("input", { type: "checkbox", checked: wanted.has("chronic"), change: recode });
  const scores = about.scores.map((score) =>
    h("input", {
      type: "checkbox",
      value: score,
      checked: wanted.getAll("scores").includes(score),
      change: changed,
    }),
  );
  const pick = (name) =>
    picker({
      data: row.id,
      label: t(`cohort.${name}`),
      how: t(`cohort.${name}.how`),
      coding,
      change: changed,
    });
  const pickers = {
    having: pick("having"),
    without: pick("without"),
    drop_codes: pick("drop_codes"),
  };
  const bounds = {
    age_from: text("age_from", { type: "number", min: 0, max: 130 }),
    age_to: text("age_to", { type: "number", min: 0, max: 130 }),
  };
  const dates = {
    date_from: text("date_from", { type: "date" }),
    date_to: text("date_to", { type: "date" }),
  };
  const sexes = about.sexes.map((sex) =>
    h("input", {
      type: "checkbox",
      value: sex,
      checked: wanted.getAll("sex").includes(sex),
      change: changed,
    }),
  );
  const least = h("input", {
    id: "at-least",
    type: "number",
    min: Math.min(about.least_codes, 1),
    max: 100,
    value: wanted.get("at_least") ?? about.least_codes,
    input: changed,
  });
  const k = h("input", {
    type: "number",
    min: 1,
    max: 50,
    value: Number(wanted.get("k")) || 5,
    "aria-label": t("cohort.k"),
    input: () => {
      chosen.checked = true;
      changed();
    },
  });
  const automatic = h("input", {
    type: "radio",
    name: "k",
    checked: !Number(wanted.get("k")),
    change: changed,
  });
  const chosen = h("input", {
    type: "radio",
    name: "k",
    checked: Boolean(Number(wanted.get("k"))),
    change: changed,
  });
  const size = h("p", { class: "size", role: "status" });
  const ask = button(t("cohort.count"), handle(measure), { hidden: row.exact });
  const run = button(t("cohort.run"), handle(start), { class: "primary" });
  let timer = 0;
  let turn = 0;
  let levelled = Promise.resolve(); // done when the codes are those of the level

  level.disabled = Boolean(own.key());
  for (const [name, one] of Object.entries(pickers)) await one.set(wanted.getAll(name));

  function coding() {
    const found = { level: [level.value] };
    if (own.key()) found.code_map = own.key();
    if (chronic.checked) found.chronic = true;
    return found;
  }

  function rules() {
    const found = coding();
    found.features = boxes.chosen();
    found.scores = scores.filter((box) => box.checked).map((box) => box.value);
    if (about.least_codes || Number(least.value)) found.at_least = Number(least.value) || 1;
    for (const [name, one] of Object.entries(pickers)) found[name] = one.codes();
    found.sex = sexes.filter((box) => box.checked).map((box) => box.value);
    const age = [bounds.age_from.value, bounds.age_to.value];
    if (age.some(Boolean)) found.age = age.map((value) => (value ? Number(value) : null));
    const days = [dates.date_from.value, dates.date_to.value];
    if (days.some(Boolean)) found.dates = days.map((value) => value || null);
    return found;
  }

  function changed() {
    window.history.replaceState(
      null,
      "",
      addressOf(row.id, rules(), chosen.checked ? k.value : "auto"),
    );
    window.clearTimeout(timer);
    waiting();
    if (row.exact) timer = window.setTimeout(measure, 250);
  }

  // Who brought the data is featureLine their number as it changes; others ask, as questions are counted.
  function waiting() {
    turn += 1;
    run.disabled = false;
    size.textContent = row.exact ? t("cohort.measuring") : t("cohort.left", { n: row.left });
  }

  // Codes of another level, or of another map, mean nothing now.
  function recode() {
    level.disabled = Boolean(own.key());
    levelled = levelled.catch(() => {}).then(keepKnown);
    return levelled;
  }

  async function keepKnown() {
    const gone = [];
    for (const one of Object.values(pickers)) {
      const named = one.names();
      const codes = one.codes();
      gone.push(...(await one.set(codes)).map((code) => named[codes.indexOf(code)]));
    }
    if (gone.length) notify(t("codes.gone", { names: gone.join(", ") }));
    changed();
  }

  async function measure() {
    turn += 1;
    const mine = turn;
    try {
      await levelled;
      if (mine !== turn) return;
      const found = await call("POST", `/api/v1/data/${row.id}/size`, { rules: rules() });
      if (mine !== turn) return;
      row.left = found.left;
      const few = (found.records ?? 0) < Number(frame.minCell);
      run.disabled = few;
      const rest = few
        ? t("cohort.few", { n: frame.minCell, records: found.records })
        : t(row.exact ? "cohort.size" : "cohort.of", {
            codes: count(found.features),
            all: count(about.records),
          });
      const left = row.exact
        ? null
        : h("span", { class: "quiet" }, ` ${t("cohort.left", { n: row.left })}`);
      size.replaceChildren(
        h("strong", {}, recordCount(found.records)),
        ` ${rest}`,
        ...(left ? [left] : []),
      );
    } catch (error) {
      if (mine !== turn) return;
      run.disabled = true;
      size.replaceChildren(error.message);
    }
  }

  // Take over a saved cohort; what these data don't have is featureLine and left out.
  async function use(saved) {
    const lacking = [
      saved.age && !about.age ? t("cohort.age") : null,
      saved.dates && !about.dates ? t("cohort.dates") : null,
      ...(saved.sex ?? []).filter((sex) => !about.sexes.includes(sex)),
      ...(saved.features ?? []).filter((word) => !boxes.names.includes(word.split("=")[0])),
    ].filter(Boolean);
    const kept = {
      ...saved,
      sex: (saved.sex ?? []).filter((sex) => about.sexes.includes(sex)),
      features: (saved.features ?? []).filter((word) => boxes.names.includes(word.split("=")[0])),
    };
    if (!about.age) delete kept.age;
    if (!about.dates) delete kept.dates;
    const codes = [...(saved.having ?? []), ...(saved.without ?? []), ...(saved.drop_codes ?? [])];
    const known = await namesOfCodes(row.id, codes, { level: saved.level, chronic: saved.chronic });
    for (const name of Object.keys(pickers))
      kept[name] = (saved[name] ?? []).filter((code) => known[code]);
    lacking.push(...codes.filter((code) => !known[code]));
    const address = addressOf(row.id, kept, chosen.checked ? k.value : "auto");
    window.location.assign(
      lacking.length ? `${address}&lacking=${encodeURIComponent(lacking.join(", "))}` : address,
    );
  }

  async function start() {
    await levelled;
    for (const one of Object.values(pickers)) if (!(await one.settle())) return one.input.focus();
    const names = pickers.having.names();
    const title = names.length ? `${names.slice(0, 3).join(", ")} · ${row.title}` : row.title;
    const made = await call("POST", "/api/v1/runs", {
      data: row.id,
      k: chosen.checked ? Number(k.value) : "auto",
      rules: rules(),
      title,
    });
    window.location.assign(`/runs/${made.id}`);
  }

  const apart = about.columns.length
    ? []
    : boxes.names.map((name) => h("label", {}, boxes.of(name), ` ${columnName(name)}`));
  const featureLine = h("p", { class: "quiet" });
  const showFeatures = () => {
    const names = boxes.chosen().map((word) => columnName(word.split("=")[0]));
    featureLine.textContent = names.length
      ? t("cohort.features", { names: names.join(", ") })
      : t("cohort.features.none");
  };

  if (wanted.get("lacking")) notify(t("saved.lacking", { names: wanted.get("lacking") }));
  boxes.watch(() => {
    showFeatures();
    changed();
  });
  showFeatures();
  waiting();
  if (row.exact) measure();
  return h(
    "section",
    { class: "cohort", "aria-labelledby": "cohort-title" },
    h("h2", { id: "cohort-title" }, t("cohort.title")),
    h("p", { class: "how" }, t("cohort.how")),
    savedCohorts({ rules, use }),
    pickers.having.element,
    h(
      "div",
      { class: "row" },
      about.age ? pair(t("cohort.age"), bounds.age_from, bounds.age_to) : null,
      sexes.length
        ? h(
            "fieldset",
            {},
            h("legend", {}, t("cohort.sex")),
            ...sexes.map((box) => h("label", {}, box, ` ${box.value}`)),
          )
        : null,
      about.dates ? pair(t("cohort.dates"), dates.date_from, dates.date_to) : null,
      h("div", { class: "field" }, h("label", { for: "at-least" }, t("cohort.at_least")), least),
    ),
    h(
      "details",
      {
        open: ["without", "drop_codes", "level", "code_map", "chronic", "scores"].some((name) =>
          wanted.has(name),
        ),
      },
      h("summary", {}, t("cohort.more")),
      pickers.without.element,
      pickers.drop_codes.element,
      about.system === "opaque"
        ? null
        : h("div", { class: "field" }, h("label", { for: "level" }, t("cohort.level")), level),
      row.kind === "builtin" ? null : own.element,
      row.kind === "builtin" || about.system === "opaque"
        ? null
        : h(
            "fieldset",
            { class: "checks" },
            h("legend", {}, t("cohort.conditions")),
            h("label", {}, chronic, ` ${t("cohort.chronic")}`),
            ...scores.map((box) => h("label", {}, box, ` ${t(`score.${box.value}`)}`)),
          ),
    ),
    apart.length
      ? h("fieldset", { class: "checks" }, h("legend", {}, t("cohort.features.title")), ...apart)
      : null,
    boxes.names.length ? featureLine : null,
    h(
      "fieldset",
      { class: "k" },
      h("legend", {}, t("cohort.k")),
      h("label", {}, automatic, ` ${t("cohort.auto")}`),
      h("label", {}, chosen, ` ${t("cohort.chosen")} `),
      k,
    ),
    h("div", { class: "go" }, size, ask, run),
  );
}

function pair(name, from, to) {
  from.setAttribute("aria-label", t("cohort.from", { name }));
  to.setAttribute("aria-label", t("cohort.to", { name }));
  return h("fieldset", {}, h("legend", {}, name), from, " – ", to);
}
