// The features other than codes: how much each separates the clusters, means, shares and gaps.

import { h, percent, plainTable, section, t } from "./dom.js";
import { shareBand } from "./data.js";
import { columnName, figures } from "./outcomes.js";

/** @param {Shown} shown */
export function features({ profile }) {
  const all = profile.features ?? [];
  if (!all.length) return null;
  return section(
    "features",
    h("h3", {}, t("features.influence")),
    influenceBar(profile, all),
    h("div", { class: "figures" }, ...all.flatMap((one) => figures(profile, one.summary))),
    gaps(profile, all),
  );
}

// One bar, parted by what sets the clusters apart, and the same in words.
/** @param {Profile} profile */
function influenceBar(profile, all) {
  const features = all.map((one) => ({ name: columnName(one.name), share: one.influence }));
  const codes = Math.max(1 - features.reduce((sum, one) => sum + one.share, 0), 0);
  const shown = [
    ...(profile.source.features ? [{ name: t("features.codes"), share: codes }] : []),
    ...features,
  ];
  return h(
    "div",
    { class: "influence" },
    h(
      "div",
      { class: "parts", "aria-hidden": "true" },
      ...shown.map((one) => h("span", { vars: { "--share": one.share } })),
    ),
    h(
      "ul",
      {},
      ...shown.map((one) =>
        h(
          "li",
          {},
          h("span", { class: "key" }),
          `${one.name} `,
          h("strong", {}, percent(one.share)),
        ),
      ),
    ),
  );
}

// The share of records without a value, over all and in each cluster; nothing where all have one.
/** @param {Profile} profile */
function gaps(profile, all) {
  const sizes = [...profile.clusters.map((cluster) => cluster.size), profile.source.records];
  const some = all.filter((one) =>
    one.summary.known.some((known, place) => known !== sizes[place]),
  );
  if (!some.length) return h("p", { class: "quiet gaps" }, t("features.complete"));
  const last = sizes.length - 1;
  const order = [last, ...profile.clusters.keys()];
  const heads = order.map((place) =>
    h(
      "th",
      { scope: "col", class: "num" },
      place === last
        ? t("all")
        : h(
            "span",
            { class: "chip", vars: { "--c": `var(--cluster-${place})` } },
            String(profile.clusters[place].number),
          ),
    ),
  );
  const rows = some.map((one) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, columnName(one.name)),
      ...order.map((place) =>
        h("td", { class: "num" }, missing(profile, one.summary.known[place], sizes[place])),
      ),
    ),
  );
  return h(
    "div",
    { class: "scroll gaps", tabindex: 0, role: "group", "aria-label": t("features.missing") },
    h("h3", {}, t("features.missing")),
    plainTable("plain", [h("td"), ...heads], rows),
  );
}

/** @param {Profile} profile */
function missing(profile, known, size) {
  if (known === null || size === null) return t("hidden");
  return shareBand(profile, Math.max(size - known, 0) / size, Math.max(size - known, 0), size);
}
