// One card for each cluster: name, size, the most relevant diagnoses, confidence, stability.

import { clusterChip, count, h, number, ofCluster, percent, roveFocus, section, t } from "./dom.js";
import { countText, shareText } from "./data.js";

/** @param {Shown} shown */
export function cards({ profile, tools }) {
  const largest = Math.max(...profile.clusters.map((cluster) => cluster.share ?? 0));
  return section(
    "cards",
    roveFocus(
      h(
        "ol",
        { class: "cards" },
        ...profile.clusters.map((_, j) => card(profile, j, largest, tools)),
      ),
      ".card",
    ),
  );
}

/** @param {Profile} profile @param {Tools} tools */
function card(profile, j, largest, tools) {
  const cluster = profile.clusters[j];
  const relevant = profile.page.relevant[j];
  const more = relevant.filter((i) => (profile.prevalence[j][i] ?? 0) > (profile.overall[i] ?? 0));
  const codes = (more.length ? more : relevant).slice(0, 5);
  return h(
    "li",
    { class: "card", "data-number": cluster.number, tabindex: 0, ...ofCluster(j) },
    h("h3", {}, clusterChip(cluster), h("span", {}, cluster.name)),
    h(
      "p",
      { class: "size" },
      h("strong", {}, countText(profile, cluster.size)),
      ` ${t("records", { n: count(cluster.size) })} · ${percent(cluster.share)}`,
    ),
    h("span", { class: "meter", vars: { "--share": (cluster.share ?? 0) / largest } }),
    byLength(profile, cluster),
    h("ul", { class: "diagnoses" }, ...codes.map((i) => diagnosis(profile, j, i))),
    notesOf(cluster),
    h(
      "dl",
      { class: "trust" },
      fact(t("cards.confidence"), percent(cluster.top), t("cards.confidence.how")),
      stability(profile, cluster),
    ),
    tools.clusterControls?.(j),
  );
}

// What people wrote of a cluster: the way of care, who looks after its patients, and a note.
/** @param {Cluster} cluster */
function notesOf(cluster) {
  const lines = ["pathway", "owner", "note"].filter((key) => cluster[key]);
  if (!lines.length) return null;
  return h(
    "dl",
    { class: "noted" },
    ...lines.map((key) => h("div", {}, h("dt", {}, t(`note.${key}`)), h("dd", {}, cluster[key]))),
  );
}

// Said where a cluster differs from all records mostly in how many codes a record has.
/** @param {Profile} profile @param {Cluster} cluster */
function byLength(profile, cluster) {
  if ((cluster.of_length ?? 0) <= profile.page.by_length) return null;
  const all = profile.caveats.length;
  const key = (cluster.length ?? 0) < (all ?? 0) ? "cards.short_records" : "cards.long_records";
  return h("p", { class: "notice" }, t(key, { n: number(cluster.length, 1), all: number(all, 1) }));
}

/** @param {Profile} profile */
function diagnosis(profile, j, i) {
  return h(
    "li",
    { "data-code": i },
    h("span", {}, profile.labels[i]),
    h("span", { class: "num" }, shareText(profile, j, i)),
  );
}

// How stable a cluster is, marked where it isn't reliable; null when not known.
/** @param {Profile} profile @param {Cluster} cluster */
export function stability(profile, cluster) {
  if (cluster.stability === null) return null;
  const weak = cluster.stability < profile.page.reliable;
  const value = number(cluster.stability, 2) + (weak ? ` · ${t("cards.doubtful")}` : "");
  return fact(t("cards.stability"), value, t("cards.stability.how"), weak ? "doubtful" : "");
}

function fact(name, value, how, kind = "") {
  return h("div", { title: how, class: kind }, h("dt", {}, name), h("dd", {}, value));
}
