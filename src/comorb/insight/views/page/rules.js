// Rules: for each cluster a short list by which a ward can tell who belongs to it.

import { codeCount, told } from "./data.js";
import { h, percent, section, t } from "./dom.js";

const WEAK = 0.7; // share of those that a rule sends to a cluster who belong there

export function rules({ profile }) {
  if (!profile.rules?.some(({ conditions }) => conditions.length)) return null;
  const columns = profile.rules.map((list, j) =>
    h(
      "div",
      { class: "column rule-list", "data-cluster": j, vars: { "--c": `var(--cluster-${j})` } },
      h("h3", {}, h("span", { class: "chip" }, String(profile.clusters[j].number)), h("span", {}, profile.clusters[j].name)),
      ...(list.conditions.length ? ruleLines(profile, list) : [h("p", { class: "quiet" }, t("rules.none"))]),
      greyLine(profile, j),
    ),
  );
  return section("rules", h("div", { class: "columns" }, ...columns));
}

function ruleLines(profile, list) {
  const answer = (member) => h("strong", {}, t(member ? "rules.yes" : "rules.no"));
  const lines = list.conditions.map(({ code, has, member }) =>
    h("li", {}, h("span", { class: "entry", "data-code": code }, worded(profile, code, has)), answer(member)),
  );
  const missed = list.recall === null ? null : 1 - list.recall;
  return [
    h("ol", {}, ...lines, h("li", { class: "otherwise" }, h("span", {}, t("rules.otherwise")), answer(list.otherwise))),
    h("p", { class: "quiet" }, t("rules.judged", { right: percent(list.precision), missed: percent(missed) })),
    list.precision !== null && list.precision < WEAK ? h("p", { class: "doubtful" }, t("rules.weak")) : null,
  ];
}

// How many records of a cluster are in doubt, and which clusters else they may be of.
function greyLine(profile, j) {
  const { members, doubtful, between } = profile.grey ?? {};
  if (!doubtful || doubtful[j] === 0) return null;
  const share = doubtful[j] === null || !members[j] ? "" : ` (${percent(doubtful[j] / members[j])})`;
  const others = between[j].map((n, i) => [n, i]).filter(([n, i]) => n && i !== j).sort((a, b) => b[0] - a[0]).slice(0, 2);
  const name = ([n, i]) => h("li", { "data-cluster": i, vars: { "--c": `var(--cluster-${i})` } }, h("span", { class: "chip" }, String(profile.clusters[i].number)), h("span", {}, profile.clusters[i].name), h("span", { class: "num quiet" }, told(profile, n)));
  return h(
    "div",
    { class: "grey" },
    h("p", {}, t("grey.line", { n: told(profile, doubtful[j]), share })),
    others.length ? h("ul", { "aria-label": t("grey.between") }, ...others.map(name)) : null,
  );
}

// A record has a code or not; what a feature says is so or not.
function worded(profile, code, has) {
  const label = profile.labels[code];
  if (code < codeCount(profile)) return `${t(has ? "rules.has" : "rules.lacks")} ${label}`;
  return has ? label : `${t("rules.isnt")} ${label}`;
}
