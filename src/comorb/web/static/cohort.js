// Choosing the cohort: which records, which codes, how many clusters. The address holds it all.

import { button, count, h, t } from "/page/dom.js";
import { columnName } from "/page/outcomes.js";
import { namesOfCodes, picker } from "./codes.js";
import { call, frame, handle, notify } from "./frame.js";
import { codeMapField } from "./code_map.js";
import { addressOf } from "./definition.js";
import { RULES, endsOf, rulesIn } from "./cohort_rules.js";
import { savedCohorts } from "./saved.js";
import { recordCount } from "./view.js";

const LEVELS = ["category", "full", "group", "chapter", "common"];

// `boxes` are those of the columns that are features, which may stand in the table of the columns.
export async function cohortForm(row, boxes) {
  const { about } = row;
  const wanted = new URLSearchParams(window.location.search);
  const given = rulesIn(wanted);
  const ofForm = (...forms) => RULES.filter(({ form }) => forms.includes(form));
  const levels = LEVELS.map((level) =>
    h("option", { value: level, selected: level === given.level?.[0] }, t(`levels.${level}`)),
  );
  const level = h("select", { id: "level", change: recode }, ...levels);
  const own = codeMapField(row, given.code_map ?? "", recode);
  const chronic = h("input", { type: "checkbox", checked: given.chronic, change: recode });
  const checkbox = (name, value) => {
    const checked = given[name]?.includes(value);
    return h("input", { type: "checkbox", value, checked, change: changed });
  };
  const scores = about.scores.map((score) => checkbox("scores", score));
  const sexes = about.sexes.map((sex) => checkbox("sex", sex));
  const pickers = Object.fromEntries(
    ofForm("codes").map(({ name }) => [
      name,
      picker({
        data: row.id,
        label: t(`cohort.${name}`),
        how: t(`cohort.${name}.how`),
        rules,
        change: changed,
      }),
    ]),
  );
  const bounds = Object.fromEntries(
    ofForm("bounds", "days").map(({ name, form }) => [
      name,
      endsOf(name).map((end, i) =>
        h("input", {
          name: end,
          value: given[name]?.[i] ?? "",
          input: changed,
          ...(form === "days" ? { type: "date" } : { type: "number", min: 0, max: 130 }),
          "aria-label": t(i ? "cohort.to" : "cohort.from", { name: t(`cohort.${name}`) }),
        }),
      ),
    ]),
  );
  const least = h("input", {
    id: "at-least",
    type: "number",
    min: Math.min(about.least_codes, 1),
    max: 100,
    value: given.at_least ?? about.least_codes,
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
  const [first, ...others] = Object.keys(pickers);
  const size = h("p", { class: "size", role: "status" });
  const ask = button(t("cohort.count"), handle(measure), { hidden: row.exact });
  const run = button(t("cohort.run"), handle(start), { class: "primary" });
  let timer = 0;
  let turn = 0;
  let levelled = Promise.resolve(); // done when the codes are those of the level

  level.disabled = Boolean(own.key());
  for (const [name, one] of Object.entries(pickers)) await one.set(given[name] ?? []);

  function rules() {
    const checked = (boxes) => boxes.filter((one) => one.checked).map((one) => one.value);
    const counted = about.least_codes || Number(least.value);
    /** @type {Record<string, any>} */
    const found = {
      level: [level.value],
      code_map: own.key() || null,
      chronic: chronic.checked,
      features: boxes.chosen(),
      scores: checked(scores),
      sex: checked(sexes),
      at_least: counted ? Number(least.value) || 1 : null,
    };
    for (const [name, one] of Object.entries(pickers)) found[name] = one.codes();
    for (const { name, form } of ofForm("bounds", "days")) {
      const ends = bounds[name].map(({ value }) => value);
      const typed = (end) => (end && form === "bounds" ? Number(end) : end || null);
      found[name] = ends.some(Boolean) ? ends.map(typed) : null;
    }
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

  // Owners of the data see their number as it changes; others ask, as questions are counted.
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

  // Take over a saved cohort; what these data don't have is listed and left out.
  async function use(saved) {
    const known = {
      sex: (sex) => about.sexes.includes(sex),
      features: (word) => boxes.names.includes(word.split("=")[0]),
    };
    const chosenCodes = Object.keys(pickers).flatMap((name) => saved[name] ?? []);
    const names = await namesOfCodes(row.id, chosenCodes, saved);
    for (const name of Object.keys(pickers)) known[name] = (code) => names[code];
    const kept = { ...saved };
    /** @type {string[]} */
    const lacking = [];
    for (const { name } of ofForm("bounds", "days")) {
      if (!saved[name] || about[name]) continue;
      lacking.push(t(`cohort.${name}`));
      delete kept[name];
    }
    for (const [name, has] of Object.entries(known)) {
      lacking.push(...(saved[name] ?? []).filter((one) => !has(one)));
      kept[name] = (saved[name] ?? []).filter(has);
    }
    const address = addressOf(row.id, kept, chosen.checked ? k.value : "auto");
    window.location.assign(
      lacking.length ? `${address}&lacking=${encodeURIComponent(lacking.join(", "))}` : address,
    );
  }

  async function start() {
    await levelled;
    for (const one of Object.values(pickers)) if (!(await one.settle())) return one.input.focus();
    const names = pickers[first].names();
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
  const pair = (name, [from, to] = bounds[name]) =>
    h("fieldset", {}, h("legend", {}, t(`cohort.${name}`)), from, " – ", to);
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
    pickers[first].element,
    h(
      "div",
      { class: "row" },
      about.age ? pair("age") : null,
      sexes.length
        ? h(
            "fieldset",
            {},
            h("legend", {}, t("cohort.sex")),
            ...sexes.map((box) => h("label", {}, box, ` ${box.value}`)),
          )
        : null,
      about.dates ? pair("dates") : null,
      h("div", { class: "field" }, h("label", { for: "at-least" }, t("cohort.at_least")), least),
    ),
    h(
      "details",
      { open: [...others, "level", "code_map", "chronic", "scores"].some((name) => given[name]) },
      h("summary", {}, t("cohort.more")),
      ...others.map((name) => pickers[name].element),
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
