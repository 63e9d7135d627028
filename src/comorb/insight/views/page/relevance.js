// The relevance table with its λ slider, worked out here on every move.

import { h, number, rove, section, t, term } from "./dom.js";
import { shareText, topCodes } from "./data.js";

const SHOWN = 10;

export function relevanceTable({ profile, state }) {
  const lists = profile.clusters.map(() => h("ol"));
  const columns = profile.clusters.map((cluster, j) =>
    h(
      "div",
      { class: "column", "data-cluster": j, vars: { "--c": `var(--cluster-${j})` } },
      h("h3", {}, h("span", { class: "chip" }, String(cluster.number)), h("span", {}, cluster.name)),
      lists[j],
    ),
  );
  const value = h("output", { for: "lambda" });

  function draw() {
    const lambda = state.get("lambda");
    value.textContent = `λ = ${number(lambda, 2)}`;
    lists.forEach((list, j) => {
      const codes = topCodes(profile, j, lambda, SHOWN);
      list.replaceChildren(
        ...(codes.length ? codes.map((i) => entry(profile, j, i)) : [h("li", { class: "quiet" }, t("hidden.cluster"))]),
      );
    });
  }

  state.watch("lambda", draw);
  draw();
  return section(
    "relevance",
    h("div", { class: "controls slider" }, slider(state), value, term("lambda", "λ")),
    rove(h("div", { class: "columns" }, ...columns), "li[data-code]"),
  );
}

function slider(state) {
  const input = h("input", {
    id: "lambda",
    type: "range",
    min: 0,
    max: 1,
    step: 0.05,
    value: state.get("lambda"),
    "aria-label": t("relevance.slider"),
    input: (event) => state.set("lambda", Number(event.target.value)),
  });
  return [
    h("span", { "aria-hidden": "true" }, t("relevance.specific")),
    input,
    h("span", { "aria-hidden": "true" }, t("relevance.frequent")),
  ];
}

function entry(profile, j, i) {
  const share = profile.prevalence[j][i];
  const overall = profile.overall[i];
  return h(
    "li",
    { "data-code": i, tabindex: 0 },
    h("span", { class: "entry" }, profile.labels[i]),
    h("span", { class: "num" }, shareText(profile, j, i)),
    h("span", { class: "num quiet", title: t("relevance.lift") }, overall ? `×${number(share / overall, 1)}` : ""),
    h("span", { class: "meter", vars: { "--share": share, "--overall": overall ?? 0 } }),
  );
}
