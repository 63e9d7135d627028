// Two runs side by side: where the patients went, which clusters match, what differs.

import { colourOf } from "/page/data.js";
import { h, number, section, t } from "/page/dom.js";
import { assets, begin, frame, get, page, trail } from "./frame.js";
import { described, facts, leftOut } from "./rules.js";
import { counted, viewed, viewSwitch } from "./view.js";

begin(async () => {
  const told = await get(viewed(`/api/v1/compare/${frame.key}`));
  const profiles = await Promise.all(told.runs.map((run) => get(viewed(`/api/v1/runs/${run.id}/profile`, told.view))));
  const sides = told.runs.map((run, i) => ({ run, profile: profiles[i], letter: "AB"[i] }));
  trail([t("home.title"), "/"], [t("compare.title")]);
  page.replaceChildren(
    h(
      "main",
      {},
      h("h1", {}, t("compare.title")),
      h("p", { class: "controls" }, viewSwitch(told.view)),
      h("div", { class: "halves" }, ...sides.map(head)),
      told.ari === null ? h("p", { class: "notice" }, t("compare.apart")) : h("p", {}, h("strong", {}, t("compare.ari", { ari: number(told.ari, 2) })), ` ${t("compare.ari.how")}`),
      told.flows ? flows(told, sides) : null,
      differences(told, sides),
      h("p", { class: "quiet" }, t(`view.${told.view}.how`, { n: frame.minCell })),
    ),
  );
});

function named(side, j) {
  const cluster = side.profile.clusters[j];
  return h("span", { class: "named", vars: { "--c": colourOf(assets.palette, cluster) } }, h("span", { class: "chip" }, String(cluster.number)), h("span", {}, cluster.name));
}

function head(side) {
  const { run, profile, letter } = side;
  const shown = { ...run, records: profile.source.records };
  return h(
    "div",
    { class: "side" },
    h("h2", {}, `${letter} · `, h("a", { href: viewed(`/runs/${run.id}`) }, run.title)),
    h("p", {}, [facts(shown), ...described(run), ...leftOut(run)].join(" · ")),
  );
}

function flows(told, [one, two]) {
  const most = Math.max(...told.flows.flat().map((value) => value ?? 0));
  const cell = (value) => h("td", { class: "num flow", vars: { "--share": value ? Math.sqrt(value / most) : 0 } }, value === 0 ? "" : counted(value));
  const heads = two.profile.clusters.map((_, j) => h("th", { scope: "col" }, named(two, j)));
  const rows = told.flows.map((row, i) => h("tr", {}, h("th", { scope: "row" }, named(one, i)), ...row.map(cell)));
  return section(
    "flows",
    h("p", {}, t("flows.shared", { n: counted(told.shared) })),
    h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": t("flows.title") }, h("table", { class: "flows" }, h("thead", {}, h("tr", {}, h("td", {}, "A ↓  B →"), ...heads)), h("tbody", {}, ...rows))),
  );
}

function differences(told, [one, two]) {
  const heads = told.pairs.map(([a, b]) => h("th", { scope: "col" }, named(one, a), "↓", named(two, b)));
  const most = Math.max(0.05, ...told.codes.flatMap((code) => code.differences.map((value) => Math.abs(value ?? 0))));
  const cell = (value) => {
    if (value === null) return h("td", { class: "num quiet" }, t("hidden"));
    const size = number(100 * Math.abs(value), 0);
    const points = Math.abs(value) < 0.005 ? "0" : `${value >= 0 ? "+" : "−"}${size}`;
    return h("td", { class: "num" }, h("span", { class: `speaks ${value >= 0 ? "more" : "less"}`, vars: { "--size": Math.abs(value) / most } }, points));
  };
  const rows = told.codes.map((code) => h("tr", {}, h("th", { scope: "row" }, h("code", {}, code.code), ` ${code.label}`), ...code.differences.map(cell)));
  return section("differences", h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": t("differences.title") }, h("table", { class: "plain" }, h("thead", {}, h("tr", {}, h("td", {}), ...heads)), h("tbody", {}, ...rows))));
}
