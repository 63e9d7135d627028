// How sure the clusters are.

import {
  clusterChip,
  count,
  h,
  number,
  ofCluster,
  percent,
  plainTable,
  roveFocus,
  scrollBox,
  section,
  t,
  term,
} from "./dom.js";
import { countText } from "./data.js";

const TERMS = ["soft", "top", "margin", "entropy", "stability"];

/** @param {Shown} shown */
export function trust({ profile, tools }) {
  const stable = profile.clusters.some((cluster) => cluster.stability !== null);
  const names = [
    "cluster",
    "size",
    "share",
    "soft",
    "top",
    "margin",
    "entropy",
    ...(stable ? ["stability"] : []),
  ];
  const rows = profile.clusters.map((cluster, j) =>
    h(
      "tr",
      ofCluster(j),
      h("th", { scope: "row" }, clusterChip(cluster), ` ${cluster.name}`),
      ...[
        countText(profile, cluster.size),
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
    h(
      "th",
      { scope: "col", class: name === "cluster" ? null : "num", title: t(`trust.${name}.how`) },
      TERMS.includes(name) ? term(name, t(`trust.${name}`)) : t(`trust.${name}`),
    ),
  );
  return section(
    "trust",
    scrollBox(t("trust.title"), plainTable("plain", heads, rows)),
    h(
      "dl",
      { class: "terms" },
      ...names
        .slice(3)
        .flatMap((name) => [h("dt", {}, t(`trust.${name}`)), h("dd", {}, t(`trust.${name}.how`))]),
    ),
    unexplained(profile, tools),
  );
}

// What the clusters leave unexplained: how long records are, and codes that come together.
/** @param {Profile} profile @param {Tools} tools */
function unexplained(profile, tools) {
  const { explained_by_length: share, pairs } = profile.caveats ?? {
    explained_by_length: null,
    pairs: [],
  };
  const name = (i) =>
    h("span", { class: "entry", "data-code": i }, profile.labels[i], tools.codeControl?.(i));
  const lines = pairs.map(({ first, second, observed, expected }) =>
    h(
      "li",
      {},
      name(first),
      " + ",
      name(second),
      h(
        "span",
        { class: "quiet" },
        ` ${t("trust.pair", { observed: count(observed), expected: count(Math.round(expected)) })}`,
      ),
    ),
  );
  return h(
    "div",
    { class: "unexplained" },
    share === null ? null : h("p", {}, t("trust.lengths", { share: percent(share) })),
    pairs.length ? h("h3", {}, t("trust.pairs")) : null,
    pairs.length ? h("p", {}, t("trust.pairs.how")) : null,
    pairs.length ? roveFocus(h("ul", { class: "pairs" }, ...lines), "li") : null,
  );
}
