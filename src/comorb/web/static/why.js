// Ask why: where a patient with these diagnoses belongs, in a sentence, and what speaks for and against.

import { h, number, percent, section, t } from "/page/dom.js";
import { columnName } from "/page/outcomes.js";
import { call, doing, may } from "./frame.js";
import { viewed } from "./view.js";

const STRONG = 4;
const SURE = 0.6;
const FIELDS = ["age", "sex"];

export function why(run, profile) {
  const codes = h("textarea", { id: "why-codes", rows: 2, placeholder: exampleOf(profile), spellcheck: "false" });
  const fields = FIELDS.map((name) => profile.features?.find((one) => one.name === name)).filter(Boolean).map((one) => valueField(profile, one));
  const found = h("div", { role: "status" });
  const typed = () => codes.value.split(/[,;\n]+/).map((part) => part.trim()).filter(Boolean);
  const go = () => {
    const given = [...typed(), ...fields.map((field) => field.word()).filter(Boolean)];
    return show(found, profile, given.length ? call("POST", viewed(`/api/v1/runs/${run.id}/explain`), { codes: given }) : null, choose);
  };
  // A word that means several codes is replaced by the one that was chosen.
  const choose = (text, code) => {
    codes.value = typed().map((part) => (part === text ? code : part)).join(", ");
    return go();
  };
  codes.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    ask.click();
  });
  const ask = h("button", { type: "button", class: "primary", click: doing(go) }, t("why.ask"));
  const others = (profile.features ?? []).filter((one) => !FIELDS.includes(one.name));
  return section(
    "why",
    h("div", { class: "field" }, h("label", { for: "why-codes" }, t("why.codes")), others.length ? h("p", { class: "quiet" }, t("why.features")) : null, codes),
    h("div", { class: "row close" }, ...fields.map((field) => field.element), ask),
    found,
    may("exporter") ? byId(run, profile, found) : null,
  );
}

// A field for a feature that everyone knows of a patient.
function valueField(profile, one) {
  const id = `why-${one.name}`;
  const levels = one.columns.map((i) => profile.codes[i].slice(one.name.length + 1));
  const input = ["number", "count"].includes(one.kind)
    ? h("input", { id, type: "number", min: 0, max: 130 })
    : h("select", { id }, h("option", { value: "" }, "–"), ...levels.map((level) => h("option", { value: level }, level)));
  return { element: h("span", { class: "why-field" }, h("label", { for: id }, columnName(one.name)), " ", input), word: () => (input.value ? `${one.name}=${input.value}` : null) };
}

// What may be typed: words, codes, and values of features where the clusters know any.
function exampleOf(profile) {
  const common = profile.labels.slice(0, profile.source.features).map((label, i) => [profile.overall[i] ?? 0, label, profile.codes[i]]).sort((a, b) => b[0] - a[0]);
  const values = (profile.features ?? []).filter((one) => !FIELDS.includes(one.name)).slice(0, 1).map((one) => {
    if (one.kind === "number" || one.kind === "count") return `${one.name}=${Math.round(one.edges.at(-1) ?? 1)}`;
    return profile.codes[one.columns.at(-1)];
  });
  return [...common.slice(0, 1).map(([, label]) => label.toLowerCase()), ...common.slice(1, 2).map(([, , code]) => code), ...values].join(", ");
}

// A record by its id from the exported assignments; it can be moved by hand, in a new run.
function byId(run, profile, found) {
  const id = h("input", { id: "why-record", type: "text", autocomplete: "off" });
  const options = profile.clusters.map((cluster) => h("option", { value: cluster.number }, `${cluster.number} ${cluster.name}`));
  const target = h("select", { "aria-label": t("why.move.to") }, ...options);
  const look = () => show(found, profile, call("POST", `/api/v1/runs/${run.id}/record`, { record: id.value.trim() }));
  const move = async () => {
    const made = await call("POST", `/api/v1/runs/${run.id}/move`, { record: id.value.trim(), cluster: Number(target.value) });
    window.location.assign(viewed(`/runs/${made.id}${window.location.hash}`));
  };
  return h(
    "div",
    { class: "field" },
    h("label", { for: "why-record" }, t("why.record")),
    h("p", { class: "controls" }, id, h("button", { type: "button", click: doing(look) }, t("why.look")), target, h("button", { type: "button", click: doing(move) }, t("why.move"))),
    h("p", { class: "quiet" }, t("why.move.how")),
  );
}

// Put the answer in the place of the one before; what goes wrong is told there too.
async function show(found, profile, asked, choose = () => {}) {
  found.replaceChildren(...(asked ? [h("p", { class: "quiet" }, t("why.asking"))] : []));
  if (!asked) return;
  const shown = await asked.then(
    (told) => [...choices(told.choices ?? [], choose), ...(told.posterior ? answer(profile, told) : [])],
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
      h("p", { class: "controls" }, ...codes.map(({ code, label }) => h("button", { type: "button", click: doing(() => choose(text, code)) }, h("code", {}, code), ` ${label}`))),
    ),
  );
}

// The answer in a sentence: the cluster, how surely, and what speaks most for it and against it.
function sentence(profile, told, best, digits) {
  const order = told.posterior.map((_, j) => j).sort((a, b) => told.posterior[b] - told.posterior[a]);
  const cluster = (j) => t("why.cluster", { number: profile.clusters[j].number, name: profile.clusters[j].name, chance: percent(told.posterior[j], digits) });
  const doubt = told.posterior[best] < SURE && order.length > 1;
  const spoken = told.codes.map((one) => [one.speaks[best], one.label || valueName(one.code)]).sort((a, b) => b[0] - a[0]);
  const strong = spoken.filter(([value]) => value >= 0.3).slice(0, 2).map(([, name]) => name);
  const weak = spoken.filter(([value]) => value <= -0.3).slice(-1).map(([, name]) => name);
  return [
    t(doubt ? "why.said.doubt" : "why.said.sure", { cluster: cluster(best), other: cluster(order[1] ?? best) }),
    strong.length ? t("why.said.for", { names: strong.join(", ") }) : t("why.said.none"),
    weak.length ? t("why.said.against", { names: weak.join(", ") }) : "",
  ].filter(Boolean).join(" ");
}

// A value such as age=82 as people say it.
function valueName(text) {
  const [name, value] = text.split("=");
  return value === undefined ? text : `${columnName(name)} ${value}`;
}

function answer(profile, told) {
  const digits = profile.min_cell ? 0 : 1;
  const best = told.posterior.indexOf(Math.max(...told.posterior));
  const columns = profile.clusters.map((_, j) => j).sort((a, b) => told.posterior[b] - told.posterior[a]).slice(0, 8);
  const mark = (j) => ({ "data-cluster": j, vars: { "--c": `var(--cluster-${j})` } });
  const heads = columns.map((j) => h("th", { scope: "col", title: profile.clusters[j].name, ...mark(j) }, h("span", { class: "chip" }, String(profile.clusters[j].number))));
  const chances = columns.map((j) => h("td", mark(j), h("strong", {}, percent(told.posterior[j], digits)), h("span", { class: "meter", vars: { "--share": told.posterior[j] } })));
  const row = (values, ...name) => h("tr", {}, h("th", { scope: "row" }, ...name), ...columns.map((j) => h("td", mark(j), speaks(values[j]))));
  const rows = told.codes.map((one) => row(one.speaks, h("code", {}, one.code), ` ${one.label}`));
  rows.push(row(told.absent, t("why.absent")));
  return [
    h("p", { class: "answer", vars: { "--c": `var(--cluster-${best})` } }, sentence(profile, told, best, digits)),
    told.unknown.length ? h("p", { class: "notice" }, t("why.unknown", { codes: told.unknown.join(", ") })) : null,
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "group", "aria-label": t("why.title") },
      h("table", { class: "plain why" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("why.speaks")), ...heads)), h("tbody", {}, h("tr", {}, h("th", { scope: "row" }, t("why.chance")), ...chances), ...rows)),
    ),
    h("p", { class: "quiet" }, t("why.how.numbers"), " ", profile.min_cell ? t("why.protected") : ""),
  ].filter(Boolean);
}

function speaks(value) {
  const side = value >= 0 ? "for" : "against";
  const size = Math.min(Math.abs(value) / STRONG, 1);
  const sign = Math.abs(value) < 0.05 ? "" : value >= 0 ? "+" : "−";
  return h("span", { class: `speaks ${side}`, vars: { "--size": size }, title: t(`why.${side}`) }, `${sign}${number(Math.abs(value), 1)}`);
}
