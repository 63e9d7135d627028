// Ask why: where a record with these codes belongs, and which of them speak for and against.

import { h, number, percent, section, t } from "/page/dom.js";
import { call, doing, may } from "./frame.js";
import { viewed } from "./view.js";

const STRONG = 4;

export function why(run, profile) {
  const codes = h("textarea", { id: "why-codes", rows: 3, placeholder: exampleOf(profile), spellcheck: "false" });
  const found = h("div", { role: "status" });
  const go = () => {
    const given = codes.value.replace(/\s*=\s*/g, "=").split(/[\s,;]+/).filter(Boolean);
    return show(found, profile, given.length ? call("POST", viewed(`/api/v1/runs/${run.id}/explain`), { codes: given }) : null);
  };
  return section(
    "why",
    h("div", { class: "field" }, h("label", { for: "why-codes" }, t("why.codes")), profile.features?.length ? h("p", { class: "quiet" }, t("why.features")) : null, codes),
    h("p", { class: "controls" }, h("button", { type: "button", class: "primary", click: doing(go) }, t("why.ask"))),
    may("exporter") ? byId(run, profile, found) : null,
    found,
  );
}

// What may be typed: codes, and values of features where the clusters know any.
function exampleOf(profile) {
  const values = (profile.features ?? []).slice(0, 2).map((one) => {
    if (one.kind === "number" || one.kind === "count") return `${one.name}=${Math.round(one.edges.at(-1) ?? 1)}`;
    return profile.codes[one.columns.at(-1)];
  });
  return [...(profile.source.features ? ["428.0", "585.6"] : []), ...values].join(", ");
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
async function show(found, profile, asked) {
  found.replaceChildren();
  if (!asked) return;
  const shown = await asked.then(
    (told) => answer(profile, told),
    (error) => [h("p", { class: "notice wrong" }, error.message)],
  );
  found.replaceChildren(...shown);
  found.scrollIntoView({ block: "nearest" });
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
    h("p", {}, t("why.best", { chance: percent(told.posterior[best], digits), number: profile.clusters[best].number, name: profile.clusters[best].name })),
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
