// Rules: for each cluster a short list of conditions, for use on a ward.

import { countText } from "./data.js";
import { clusterChip, h, ofCluster, percent, section, t } from "./dom.js";

const WEAK = 0.7; // share of those that a rule sends to a cluster who belong there

/** @param {Shown} shown */
export function rules({ profile }) {
  if (!profile.rules?.some(({ conditions }) => conditions.length)) return null;
  const columns = profile.rules.map((list, j) =>
    h(
      "div",
      { class: "column rule-list", ...ofCluster(j) },
      h("h3", {}, clusterChip(profile.clusters[j]), h("span", {}, profile.clusters[j].name)),
      ...(list.conditions.length
        ? ruleLines(profile, list)
        : [h("p", { class: "quiet" }, t("rules.none"))]),
      uncertainLine(profile, j),
    ),
  );
  return section("rules", h("div", { class: "columns" }, ...columns));
}

/** @param {Profile} profile */
function ruleLines(profile, list) {
  const answer = (member) => h("strong", {}, t(member ? "rules.yes" : "rules.no"));
  const lines = list.conditions.map(({ code, has, member }) =>
    h(
      "li",
      {},
      h("span", { class: "entry", "data-code": code }, wordCondition(profile, code, has)),
      answer(member),
    ),
  );
  const missed = list.recall === null ? null : 1 - list.recall;
  return [
    h(
      "ol",
      {},
      ...lines,
      h("li", { class: "otherwise" }, h("span", {}, t("rules.otherwise")), answer(list.otherwise)),
    ),
    h(
      "p",
      { class: "quiet" },
      t("rules.judged", { right: percent(list.precision), missed: percent(missed) }),
    ),
    list.precision !== null && list.precision < WEAK
      ? h("p", { class: "doubtful" }, t("rules.weak"))
      : null,
  ];
}

// How many records of a cluster are in doubt, and which clusters else they may be of.
/** @param {Profile} profile */
function uncertainLine(profile, j) {
  const doubtful = profile.grey?.doubtful[j];
  if (!profile.grey || doubtful === 0) return null;
  const members = profile.grey.members[j];
  const share = doubtful && members ? ` (${percent(doubtful / members)})` : "";
  const others = profile.grey.between[j]
    .map((n, i) => ({ n: n ?? 0, i }))
    .filter(({ n, i }) => n && i !== j)
    .sort((a, b) => b.n - a.n)
    .slice(0, 2);
  const name = ({ n, i }) =>
    h(
      "li",
      ofCluster(i),
      clusterChip(profile.clusters[i]),
      h("span", {}, profile.clusters[i].name),
      h("span", { class: "num quiet" }, countText(profile, n)),
    );
  return h(
    "div",
    { class: "grey" },
    h("p", {}, t("grey.line", { n: countText(profile, doubtful), share })),
    others.length ? h("ul", { "aria-label": t("grey.between") }, ...others.map(name)) : null,
  );
}

/** A record has a code or not; what a feature says is so or not. @param {Profile} profile */
function wordCondition(profile, code, has) {
  const label = profile.labels[code];
  if (code < profile.page.n_codes) return `${t(has ? "rules.has" : "rules.lacks")} ${label}`;
  return has ? label : `${t("rules.isnt")} ${label}`;
}
