// What was clustered: title, numbers, the reason for the number of clusters, and whether counts are protected.

import { count, h, said, t } from "./dom.js";

export function header(profile) {
  const { source } = profile;
  const facts = [
    [count(source.records), t("about.records", { n: count(source.records) })],
    source.features || !profile.features ? [count(source.features), t("about.codes", { n: count(source.features), system: source.system_title ?? "", level: levelName(source.level) })] : null,
    profile.features ? [count(profile.features.length), t("about.features", { n: profile.features.length })] : null,
    [count(profile.clusters.length), t("about.clusters", { n: profile.clusters.length })],
    source.weight === null ? null : [count(Math.round(source.weight)), t("about.weight")],
  ].filter(Boolean);
  return h(
    "header",
    {},
    h("h1", {}, source.title),
    h("ul", { class: "facts" }, ...facts.map(([value, name]) => h("li", {}, h("strong", {}, value), ` ${name}`))),
    source.reason ? h("p", {}, h("strong", {}, `${t("about.reason")} `), said(source.reason)) : null,
    h("p", { class: "notice view" }, t(profile.min_cell ? "about.protected" : "about.full", { n: profile.min_cell, few: profile.min_cell - 1 })),
  );
}

function levelName(level) {
  return level.split("+").map((part) => t(`level.${part}`)).join(" + ");
}
