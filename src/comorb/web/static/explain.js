// Ask why: where a patient with these diagnoses belongs, in a sentence, and what speaks for and against.

import {
  button,
  clusterChip,
  h,
  number,
  ofCluster,
  percent,
  plainTable,
  scrollBox,
  section,
  t,
} from "/page/dom.js";
import { columnName } from "/page/outcomes.js";
import { call, handle, may } from "./frame.js";
import { withView } from "./view.js";

const STRONG = 4;
const FIELDS = ["age", "sex"];

/** @param {Run} run @param {Profile} profile */
export function explanation(run, profile) {
  const codes = h("textarea", {
    id: "why-codes",
    rows: 2,
    placeholder: exampleOf(profile),
    spellcheck: "false",
  });
  const fields = FIELDS.map((name) => profile.features?.find((one) => one.name === name))
    .filter(Boolean)
    .map((one) => valueField(profile, one));
  const found = h("div", { role: "status" });
  const typed = () =>
    codes.value
      .split(/[,;\n]+/)
      .map((part) => part.trim())
      .filter(Boolean);
  const go = () => {
    const given = [...typed(), ...fields.map((field) => field.word()).filter(Boolean)];
    return show(
      found,
      profile,
      given.length
        ? call("POST", withView(`/api/v1/runs/${run.id}/explain`), { codes: given })
        : null,
      choose,
    );
  };
  // A word that means several codes is replaced by the one that was chosen.
  const choose = (text, code) => {
    codes.value = typed()
      .map((part) => (part === text ? code : part))
      .join(", ");
    return go();
  };
  codes.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    ask.click();
  });
  const ask = button(t("why.ask"), handle(go), { class: "primary" });
  const others = (profile.features ?? []).filter((one) => !FIELDS.includes(one.name));
  return section(
    "why",
    h(
      "div",
      { class: "field" },
      h("label", { for: "why-codes" }, t("why.codes")),
      others.length ? h("p", { class: "quiet" }, t("why.features")) : null,
      codes,
    ),
    h("div", { class: "row close" }, ...fields.map((field) => field.element), ask),
    found,
    may("exporter") ? byId(run, profile, found) : null,
  );
}

/** A field for a feature that everyone knows of a patient. @param {Profile} profile */
function valueField(profile, one) {
  const id = `why-${one.name}`;
  const levels = one.columns.map((i) => profile.codes[i].slice(one.name.length + 1));
  const input = ["number", "count"].includes(one.kind)
    ? h("input", { id, type: "number", min: 0, max: 130 })
    : h(
        "select",
        { id },
        h("option", { value: "" }, "–"),
        ...levels.map((level) => h("option", { value: level }, level)),
      );
  return {
    element: h(
      "span",
      { class: "why-field" },
      h("label", { for: id }, columnName(one.name)),
      " ",
      input,
    ),
    word: () => (input.value ? `${one.name}=${input.value}` : null),
  };
}

// What may be typed: words, codes, and values of features where the clusters know any.
/** @param {Profile} profile */
function exampleOf(profile) {
  const common = profile.page.common.filter((i) => i < profile.page.n_codes);
  const values = (profile.features ?? [])
    .filter((one) => !FIELDS.includes(one.name))
    .slice(0, 1)
    .map((one) => {
      if (one.kind === "number" || one.kind === "count")
        return `${one.name}=${Math.round(one.edges.at(-1) ?? 1)}`;
      return profile.codes[one.columns.at(-1) ?? 0];
    });
  return [
    ...common.slice(0, 1).map((i) => profile.labels[i].toLowerCase()),
    ...common.slice(1, 2).map((i) => profile.codes[i]),
    ...values,
  ].join(", ");
}

// A record by its id from the exported assignments; it can be moved by hand, in a new run.
/** @param {Run} run @param {Profile} profile */
function byId(run, profile, found) {
  const id = h("input", { id: "why-record", type: "text", autocomplete: "off" });
  const options = profile.clusters.map((cluster) =>
    h("option", { value: cluster.number }, `${cluster.number} ${cluster.name}`),
  );
  const target = h("select", { "aria-label": t("why.move.to") }, ...options);
  const look = () =>
    show(
      found,
      profile,
      call("POST", `/api/v1/runs/${run.id}/record`, { record: id.value.trim() }),
    );
  const move = async () => {
    const made = await call("POST", `/api/v1/runs/${run.id}/move`, {
      record: id.value.trim(),
      cluster: Number(target.value),
    });
    window.location.assign(withView(`/runs/${made.id}${window.location.hash}`));
  };
  return h(
    "div",
    { class: "field" },
    h("label", { for: "why-record" }, t("why.record")),
    h(
      "p",
      { class: "controls" },
      id,
      button(t("why.look"), handle(look)),
      target,
      button(t("why.move"), handle(move)),
    ),
    h("p", { class: "quiet" }, t("why.move.how")),
  );
}

// Put the answer in the place of the one before; an error is shown there too.
/** @param {Profile} profile */
async function show(found, profile, pending, choose = () => {}) {
  found.replaceChildren(...(pending ? [h("p", { class: "quiet" }, t("why.asking"))] : []));
  if (!pending) return;
  const shown = await pending.then(
    (result) => [
      ...choices(result.choices ?? [], choose),
      ...(result.posterior ? answer(profile, result) : []),
    ],
    (error) => [h("p", { class: "notice wrong" }, error.message)],
  );
  found.replaceChildren(...shown);
  found.scrollIntoView({ block: "nearest" });
}

// Words that mean several diagnoses: which one is it?
function choices(all, choose) {
  return all.map(({ text, codes }) =>
    h(
      "div",
      { class: "notice choices" },
      h("p", {}, t("why.choose", { text })),
      h(
        "p",
        { class: "controls" },
        ...codes.map(({ code, label }) =>
          h(
            "button",
            { type: "button", click: handle(() => choose(text, code)) },
            h("code", {}, code),
            ` ${label}`,
          ),
        ),
      ),
    ),
  );
}

// The answer in a sentence: the cluster, how surely, and what speaks most for it and against it.
/** @param {Profile} profile */
function sentence(profile, result, best, digits) {
  const order = result.posterior
    .map((_, j) => j)
    .sort((a, b) => result.posterior[b] - result.posterior[a]);
  const cluster = (j) =>
    t("why.cluster", {
      number: profile.clusters[j].number,
      name: profile.clusters[j].name,
      chance: percent(result.posterior[j], digits),
    });
  const doubt = result.posterior[best] < profile.page.sure && order.length > 1;
  const spoken = result.codes
    .map((one) => [one.speaks[best], one.label || valueName(one.code)])
    .sort((a, b) => b[0] - a[0]);
  const strong = spoken
    .filter(([value]) => value >= 0.3)
    .slice(0, 2)
    .map(([, name]) => name);
  const weak = spoken
    .filter(([value]) => value <= -0.3)
    .slice(-1)
    .map(([, name]) => name);
  return [
    t(doubt ? "why.said.doubt" : "why.said.sure", {
      cluster: cluster(best),
      other: cluster(order[1] ?? best),
    }),
    strong.length ? t("why.said.for", { names: strong.join(", ") }) : t("why.said.none"),
    weak.length ? t("why.said.against", { names: weak.join(", ") }) : "",
  ]
    .filter(Boolean)
    .join(" ");
}

// A value such as age=82 as people say it.
function valueName(text) {
  const [name, value] = text.split("=");
  return value === undefined ? text : `${columnName(name)} ${value}`;
}

/** @param {Profile} profile */
function answer(profile, result) {
  const digits = profile.min_cell ? 0 : 1;
  const best = result.posterior.indexOf(Math.max(...result.posterior));
  const columns = profile.clusters
    .map((_, j) => j)
    .sort((a, b) => result.posterior[b] - result.posterior[a])
    .slice(0, 8);
  const mark = (j) => ofCluster(j);
  const heads = columns.map((j) =>
    h(
      "th",
      { scope: "col", title: profile.clusters[j].name, ...mark(j) },
      clusterChip(profile.clusters[j]),
    ),
  );
  const chances = columns.map((j) =>
    h(
      "td",
      mark(j),
      h("strong", {}, percent(result.posterior[j], digits)),
      h("span", { class: "meter", vars: { "--share": result.posterior[j] } }),
    ),
  );
  const row = (values, ...name) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, ...name),
      ...columns.map((j) => h("td", mark(j), speaks(values[j]))),
    );
  const rows = result.codes.map((one) => row(one.speaks, h("code", {}, one.code), ` ${one.label}`));
  rows.push(row(result.absent, t("why.absent")));
  return [
    h(
      "p",
      { class: "answer", vars: { "--c": `var(--cluster-${best})` } },
      sentence(profile, result, best, digits),
    ),
    result.unknown.length
      ? h("p", { class: "notice" }, t("why.unknown", { codes: result.unknown.join(", ") }))
      : null,
    scrollBox(
      t("why.title"),
      plainTable(
        "plain why",
        [h("th", { scope: "col" }, t("why.speaks")), ...heads],
        [h("tr", {}, h("th", { scope: "row" }, t("why.chance")), ...chances), ...rows],
      ),
    ),
    h(
      "p",
      { class: "quiet" },
      t("why.how.numbers"),
      " ",
      profile.min_cell ? t("why.protected") : "",
    ),
  ].filter(Boolean);
}

function speaks(value) {
  const side = value >= 0 ? "for" : "against";
  const size = Math.min(Math.abs(value) / STRONG, 1);
  const sign = Math.abs(value) < 0.05 ? "" : value >= 0 ? "+" : "−";
  return h(
    "span",
    { class: `speaks ${side}`, vars: { "--size": size }, title: t(`why.${side}`) },
    `${sign}${number(Math.abs(value), 1)}`,
  );
}
