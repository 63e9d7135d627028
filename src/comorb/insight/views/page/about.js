// What was clustered, what was left out and why, how sure the clusters are, how to do it again.

import { count, h, number, percent, said, section, t } from "./dom.js";

export function header(profile) {
  const { source } = profile;
  const facts = [
    [count(source.records), t("about.records")],
    [count(source.features), t("about.codes", { system: systemName(source.system), level: levelName(source.level) })],
    [count(profile.clusters.length), t("about.clusters")],
    source.weight === null ? null : [count(Math.round(source.weight)), t("about.weight")],
  ].filter(Boolean);
  return h(
    "header",
    {},
    h("h1", {}, source.title),
    h("ul", { class: "facts" }, ...facts.map(([value, name]) => h("li", {}, h("strong", {}, value), ` ${name}`))),
    source.reason ? h("p", {}, h("strong", {}, `${t("about.reason")} `), said(source.reason)) : null,
    profile.min_cell ? h("p", { class: "notice" }, t("about.min_cell", { n: profile.min_cell })) : null,
  );
}

export function ledger({ profile }) {
  const { source } = profile;
  const rows = source.lines.map((line) =>
    h(
      "tr",
      {},
      h("td", {}, t(`ledger.${line.unit}`)),
      h("td", {}, said(line.rule)),
      h("td", { class: "num" }, count(line.before)),
      h("td", { class: "num" }, line.before > line.after ? `−${count(line.before - line.after)}` : "–"),
      h("td", { class: "num" }, count(line.after)),
    ),
  );
  const heads = ["unit", "rule", "before", "removed", "after"].map((key) =>
    h("th", { scope: "col", class: key === "unit" || key === "rule" ? null : "num" }, t(`ledger.${key}`)),
  );
  return section(
    "ledger",
    h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": t("ledger.title") }, h("table", { class: "plain" }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows))),
    source.notes.length ? h("ul", { class: "notes" }, ...source.notes.map((note) => h("li", {}, said(note)))) : null,
  );
}

export function trust({ profile }) {
  const stable = profile.clusters.some((cluster) => cluster.stability !== null);
  const names = ["cluster", "size", "share", "soft", "top", "margin", "entropy", ...(stable ? ["stability"] : [])];
  const rows = profile.clusters.map((cluster, j) =>
    h(
      "tr",
      { "data-cluster": j, vars: { "--c": `var(--cluster-${j})` } },
      h("th", { scope: "row" }, h("span", { class: "chip" }, String(cluster.number)), ` ${cluster.name}`),
      ...[
        count(cluster.size),
        percent(cluster.share, 1),
        percent(cluster.soft_share, 1),
        percent(cluster.top),
        percent(cluster.margin),
        number(cluster.entropy, 2),
        ...(stable ? [number(cluster.stability, 2)] : []),
      ].map((text) => h("td", { class: "num" }, text)),
    ),
  );
  const heads = names.map((name) =>
    h("th", { scope: "col", class: name === "cluster" ? null : "num", title: t(`trust.${name}.how`) }, t(`trust.${name}`)),
  );
  return section(
    "trust",
    h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": t("trust.title") }, h("table", { class: "plain" }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows))),
    h("dl", { class: "terms" }, ...names.slice(3).flatMap((name) => [h("dt", {}, t(`trust.${name}`)), h("dd", {}, t(`trust.${name}.how`))])),
  );
}

export function again({ profile }) {
  const { source } = profile;
  const facts = [
    source.command ? [t("again.command"), h("code", {}, source.command)] : null,
    [t("again.version"), h("code", {}, `comorb ${source.version}`)],
    [t("again.digest"), h("code", { class: "digest" }, source.digest)],
  ].filter(Boolean);
  return section("again", h("dl", { class: "terms" }, ...facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])));
}

function systemName(system) {
  return { icd9cm: "ICD-9-CM", icd10: "ICD-10", icd10cm: "ICD-10-CM" }[system] ?? "";
}

function levelName(level) {
  return level.split("+").map((part) => t(`level.${part}`)).join(" + ");
}
