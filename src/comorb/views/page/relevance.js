// The relevance table with its λ slider, worked out here on every move.

import { clusterChip, h, number, ofCluster, roveFocus, section, t, term } from "./dom.js";
import { relevantCodes, shareText } from "./data.js";

const SHOWN = 10;

/** @param {Shown} shown */
export function relevanceTable({ profile, state, tools }) {
  const lists = profile.clusters.map(() => h("ol"));
  const columns = profile.clusters.map((cluster, j) =>
    h(
      "div",
      { class: "column", ...ofCluster(j) },
      h("h3", {}, clusterChip(cluster), h("span", {}, cluster.name)),
      lists[j],
    ),
  );
  const value = h("output", { for: "lambda" });

  function draw() {
    const lambda = state.get("lambda") ?? profile.page.lambda;
    value.textContent = `λ = ${number(lambda, 2)}`;
    lists.forEach((list, j) => {
      const codes = relevantCodes(profile, j, lambda, SHOWN);
      list.replaceChildren(
        ...(codes.length
          ? codes.map((i) => entry(profile, j, i, tools))
          : [h("li", { class: "quiet" }, t("hidden.cluster"))]),
      );
    });
  }

  state.watch("lambda", draw);
  draw();
  return section(
    "relevance",
    h("div", { class: "controls slider" }, slider(profile, state), value, term("lambda", "λ")),
    roveFocus(h("div", { class: "columns" }, ...columns), "li[data-code]"),
  );
}

/** @param {Profile} profile @param {State} state */
function slider(profile, state) {
  const input = h("input", {
    id: "lambda",
    type: "range",
    min: 0,
    max: 1,
    step: 0.05,
    value: state.get("lambda") ?? profile.page.lambda,
    "aria-label": t("relevance.slider"),
    input: (event) => state.set("lambda", Number(event.target.value)),
  });
  return [
    h("span", { "aria-hidden": "true" }, t("relevance.specific")),
    input,
    h("span", { "aria-hidden": "true" }, t("relevance.frequent")),
  ];
}

/** @param {Profile} profile @param {Tools} tools */
function entry(profile, j, i, tools) {
  const share = profile.prevalence[j][i] ?? 0;
  const overall = profile.overall[i];
  return h(
    "li",
    { "data-code": i, tabindex: 0 },
    h("span", { class: "entry" }, profile.labels[i], tools.codeControl?.(i)),
    h("span", { class: "num" }, shareText(profile, j, i)),
    h(
      "span",
      { class: "num quiet", title: t("relevance.lift") },
      overall ? `×${number(share / overall, 1)}` : "",
    ),
    h("span", { class: "meter", vars: { "--share": share, "--overall": overall ?? 0 } }),
  );
}
