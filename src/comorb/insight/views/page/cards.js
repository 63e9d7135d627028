// One card for each cluster: name, size, the most relevant diagnoses, confidence, stability.

import { count, h, number, percent, rove, section, t } from "./dom.js";
import { shareText, told, topCodes } from "./data.js";

const DOUBTFUL = 0.75;
const MOSTLY = 0.5;

export function cards({ profile }) {
  const largest = Math.max(...profile.clusters.map((cluster) => cluster.share ?? 0));
  return section(
    "cards",
    rove(h("ol", { class: "cards" }, ...profile.clusters.map((_, j) => card(profile, j, largest))), ".card"),
  );
}

function card(profile, j, largest) {
  const cluster = profile.clusters[j];
  const relevant = topCodes(profile, j, 0.6, profile.codes.length);
  const more = relevant.filter((i) => profile.prevalence[j][i] > profile.overall[i]);
  const codes = (more.length ? more : relevant).slice(0, 5);
  return h(
    "li",
    { class: "card", "data-cluster": j, "data-number": cluster.number, tabindex: 0, vars: { "--c": `var(--cluster-${j})` } },
    h("h3", {}, h("span", { class: "chip" }, String(cluster.number)), h("span", {}, cluster.name)),
    h(
      "p",
      { class: "size" },
      h("strong", {}, told(profile, cluster.size)),
      ` ${t("records", { n: count(cluster.size) })} · ${percent(cluster.share)}`,
    ),
    h("span", { class: "meter", vars: { "--share": (cluster.share ?? 0) / largest } }),
    byLength(profile, cluster),
    h("ul", { class: "diagnoses" }, ...codes.map((i) => diagnosis(profile, j, i))),
    noted(cluster),
    h(
      "dl",
      { class: "trust" },
      fact(t("cards.confidence"), percent(cluster.top), t("cards.confidence.how")),
      stability(cluster),
    ),
  );
}

// What people wrote of a cluster: the way of care, who looks after its patients, and a note.
function noted(cluster) {
  const lines = ["pathway", "owner", "note"].filter((key) => cluster[key]);
  if (!lines.length) return null;
  return h("dl", { class: "noted" }, ...lines.map((key) => h("div", {}, h("dt", {}, t(`note.${key}`)), h("dd", {}, cluster[key]))));
}

// Said where a cluster differs from all records mostly in how many codes a record has.
function byLength(profile, cluster) {
  if (!(cluster.of_length > MOSTLY)) return null;
  const all = profile.caveats.length;
  const key = cluster.length < all ? "cards.short_records" : "cards.long_records";
  return h("p", { class: "notice" }, t(key, { n: number(cluster.length, 1), all: number(all, 1) }));
}

function diagnosis(profile, j, i) {
  return h(
    "li",
    { "data-code": i },
    h("span", {}, profile.labels[i]),
    h("span", { class: "num" }, shareText(profile, j, i)),
  );
}

// How stable a cluster is, marked where less than DOUBTFUL of it comes back; null when not known.
export function stability(cluster) {
  if (cluster.stability === null) return null;
  const weak = cluster.stability < DOUBTFUL;
  const value = number(cluster.stability, 2) + (weak ? ` · ${t("cards.doubtful")}` : "");
  return fact(t("cards.stability"), value, t("cards.stability.how"), weak ? "doubtful" : "");
}

function fact(name, value, how, kind = "") {
  return h("div", { title: how, class: kind }, h("dt", {}, name), h("dd", {}, value));
}
