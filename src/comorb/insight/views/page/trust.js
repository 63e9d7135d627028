// How sure the clusters are.

import { count, h, number, percent, section, t, term } from "./dom.js";
import { told } from "./data.js";

const TERMS = ["soft", "top", "margin", "entropy", "stability"];

export function trust({ profile }) {
  const stable = profile.clusters.some((cluster) => cluster.stability !== null);
  const names = ["cluster", "size", "share", "soft", "top", "margin", "entropy", ...(stable ? ["stability"] : [])];
  const rows = profile.clusters.map((cluster, j) =>
    h(
      "tr",
      { "data-cluster": j, vars: { "--c": `var(--cluster-${j})` } },
      h("th", { scope: "row" }, h("span", { class: "chip" }, String(cluster.number)), ` ${cluster.name}`),
      ...[
        told(profile, cluster.size),
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
    h("th", { scope: "col", class: name === "cluster" ? null : "num", title: t(`trust.${name}.how`) }, TERMS.includes(name) ? term(name, t(`trust.${name}`)) : t(`trust.${name}`)),
  );
  return section(
    "trust",
    h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": t("trust.title") }, h("table", { class: "plain" }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows))),
    h("dl", { class: "terms" }, ...names.slice(3).flatMap((name) => [h("dt", {}, t(`trust.${name}`)), h("dd", {}, t(`trust.${name}.how`))])),
    unexplained(profile),
  );
}

// What the clusters leave unexplained: how long records are, and codes that come together.
function unexplained(profile) {
  const { explained_by_length: share, pairs } = profile.caveats ?? { explained_by_length: null, pairs: [] };
  const name = (i) => h("span", { class: "entry", "data-code": i }, profile.labels[i]);
  const lines = pairs.map(({ first, second, observed, expected }) =>
    h("li", {}, name(first), " + ", name(second), h("span", { class: "quiet" }, ` ${t("trust.pair", { observed: count(observed), expected: count(Math.round(expected)) })}`)),
  );
  return h(
    "div",
    { class: "unexplained" },
    share === null ? null : h("p", {}, t("trust.lengths", { share: percent(share) })),
    pairs.length ? h("h3", {}, t("trust.pairs")) : null,
    pairs.length ? h("p", {}, t("trust.pairs.how")) : null,
    pairs.length ? h("ul", { class: "pairs" }, ...lines) : null,
  );
}
