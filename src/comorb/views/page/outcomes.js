// Outcomes per cluster: a dot and its interval, over all records and in each cluster; stars choose them.

import { clusterChip, h, hasText, number, ofCluster, percent, section, t, term } from "./dom.js";
import { countText, shareBand } from "./data.js";
import { correctedOf, dot, scaleOf } from "./scale.js";

const USUAL = ["died", "readmitted", "los", "cost", "age"];

/** @param {Shown} shown */
export function outcomes({ profile, state, tools }) {
  const rank = (name) => (USUAL.includes(name) ? USUAL.indexOf(name) : USUAL.length);
  const ranked = [...profile.outcomes].sort((a, b) => rank(a.name) - rank(b.name));
  const drawn = ranked
    .map((outcome) => ({ outcome, parts: figures(profile, outcome) }))
    .filter(({ parts }) => parts.length);
  if (!drawn.length) return null;
  const stars = starKeeper(state, tools);
  const corrected = profile.outcomes.some((outcome) => outcome.corrected);
  const blocks = drawn.map(({ outcome, parts }) => block(outcome, parts, stars));
  const search = h("input", {
    type: "search",
    "aria-label": t("outcomes.find"),
    placeholder: t("outcomes.find"),
    input: () => show(),
  });
  const every = h("button", {
    type: "button",
    click: () => state.set("outcomes", state.get("outcomes") ? "" : "all"),
  });
  const none = h("p", { class: "quiet", role: "status" });

  function show() {
    const words = search.value.trim().toLowerCase();
    const all = state.get("outcomes") === "all";
    const usual = drawn.map(({ outcome }) => outcome.name).filter((name) => USUAL.includes(name));
    const first = stars.names().length ? stars.names() : usual;
    const wanted = ({ outcome }) =>
      words
        ? `${outcome.name} ${columnName(outcome.name)}`.toLowerCase().includes(words)
        : all || !first.length || first.includes(outcome.name);
    blocks.forEach((one, i) => {
      one.hidden = !wanted(drawn[i]);
    });
    const hidden = blocks.filter((one) => one.hidden).length;
    every.hidden = Boolean(words) || (!all && !hidden);
    every.textContent = all ? t("outcomes.fewer") : t("outcomes.all", { n: blocks.length });
    none.textContent = words && hidden === blocks.length ? t("outcomes.none") : "";
  }

  stars.watch(show);
  state.watch("outcomes", show);
  show();
  return section(
    "outcomes",
    h(
      "p",
      { class: "quiet" },
      term("interval", t("glossary.interval.name")),
      corrected ? ` ${t("outcomes.corrected")}` : null,
    ),
    h(
      "div",
      { class: "controls" },
      search,
      every,
      h(
        "span",
        { class: "quiet" },
        t(stars.shared ? "outcomes.star.shared" : "outcomes.star.address"),
      ),
    ),
    none,
    h("div", { class: "figures broad" }, ...blocks),
  );
}

// Which outcomes are starred: kept with the run by its owner, and else in the address.
/** @param {State} state @param {Tools} tools */
function starKeeper(state, tools) {
  const watchers = [];
  let starred = state.get("starred")
    ? state.get("starred").split(",").map(decodeURIComponent)
    : (tools.starred ?? []);
  return {
    shared: Boolean(tools.star),
    names: () => starred,
    watch: (call) => watchers.push(call),
    async toggle(name) {
      const next = starred.includes(name)
        ? starred.filter((one) => one !== name)
        : [...starred, name];
      starred = tools.star ? await tools.star(next) : next;
      if (!tools.star) state.set("starred", next.map(encodeURIComponent).join(","));
      for (const call of watchers) call();
    },
  };
}

/** @param {Outcome} outcome */
function block(outcome, parts, stars) {
  const name = columnName(outcome.name);
  const star = h("button", {
    type: "button",
    class: "star",
    click: () => stars.toggle(outcome.name),
  });
  const mark = () => {
    const on = stars.names().includes(outcome.name);
    star.textContent = on ? "★" : "☆";
    star.setAttribute("aria-pressed", String(on));
    star.setAttribute("aria-label", t("outcomes.star", { name }));
  };
  stars.watch(mark);
  mark();
  return h("div", { class: "outcome" }, h("h3", {}, star, h("span", {}, name)), ...parts);
}

/** @param {Profile} profile @param {Outcome} outcome */
export function figures(profile, outcome) {
  const seen = outcome.values
    .map((_, v) => v)
    .filter((v) => !outcome.estimate[v].every((x) => x === null));
  const scale = scaleOf(
    seen.map((v) => ({
      estimate: outcome.estimate[v],
      low: outcome.low[v],
      high: outcome.high[v],
    })),
    outcome.kind,
  );
  return seen.map((v) => figure(profile, outcome, v, scale));
}

/** @param {Profile} profile @param {Outcome} outcome @param {any} v @param {any} part3 */
function figure(profile, outcome, v, { at, ends }) {
  const share = outcome.kind === "share";
  const better = correctedOf(outcome, v);
  const all = profile.clusters.length;
  const show = (x) => (share ? percent(x, 1) : number(x, 1));
  const rows = [all, ...profile.clusters.keys()].map((place) => {
    const estimate = outcome.estimate[v][place];
    const [low, high] = [outcome.low[v][place], outcome.high[v][place]];
    const events = share ? countText(profile, outcome.counts[v][place]) : null;
    const known = countText(profile, outcome.known[place]);
    const counted = share
      ? h("span", { class: "beneath quiet" }, t("outcomes.counted", { n: events, all: known }))
      : null;
    const figure = better && place !== all ? better[place] : null;
    const corrected =
      figure === null
        ? null
        : h("span", { class: "beneath quiet" }, t("outcomes.better", { x: show(figure) }));
    const marks = place === all ? { class: "overall" } : ofCluster(place);
    const range = low === null ? "" : `${show(low)} – ${show(high)}`;
    const cluster = profile.clusters[place];
    return h(
      "tr",
      marks,
      h(
        "th",
        { scope: "row", title: cluster?.name },
        place === all
          ? t("all")
          : h(
              "span",
              { class: "who" },
              clusterChip(cluster),
              h("span", { class: "name" }, cluster.name),
            ),
      ),
      h(
        "td",
        { class: "dot" },
        estimate === null ? "" : dot(at(estimate), at(low ?? estimate), at(high ?? estimate)),
      ),
      h(
        "td",
        { class: "num", title: t("outcomes.known", { n: known }) },
        share
          ? shareBand(profile, estimate, outcome.counts[v][place], outcome.known[place], 1)
          : show(estimate),
        counted,
      ),
      h("td", { class: "num quiet" }, range, corrected),
    );
  });
  const axis = h(
    "tr",
    { class: "ends quiet", "aria-hidden": "true" },
    h("td", {}),
    h("td", {}, h("span", {}, show(ends[0])), h("span", {}, show(ends[1]))),
    h("td", { colspan: 2 }),
  );
  return h(
    "table",
    { class: "figure" },
    h(
      "caption",
      { class: outcome.values.length === 1 ? "unseen" : null },
      title(outcome, outcome.values[v]),
    ),
    h("tbody", {}, ...rows),
    h("tfoot", {}, axis),
  );
}

/** @param {Outcome} outcome */
function title(outcome, value) {
  const name = columnName(outcome.name);
  if (outcome.kind === "number") return `${name}: ${t(`outcomes.${value}`)}`;
  return isYes(outcome, value) ? name : `${name}: ${valueName(value)}`;
}

// What a value of a column is called on the page.
export function valueName(value) {
  const key = `value.${value.toLowerCase()}`;
  return hasText(key) ? t(key) : value.replaceAll("_", " ");
}

// What a column is called on the page: by its role, or by its own name made plain.
export function columnName(name) {
  const key = `outcome.${name}`;
  const plain = name.replaceAll("_", " ");
  return hasText(key) ? t(key) : plain.charAt(0).toUpperCase() + plain.slice(1);
}

/** @param {Outcome} outcome */
function isYes(outcome, value) {
  return outcome.values.length === 1 && ["true", "1", "yes", "y"].includes(value.toLowerCase());
}
