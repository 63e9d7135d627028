// The disease-frequency chart: a row for each common code, a bar for each cluster and overall.

import { button, h, ofCluster, roveFocus, scrollBox, section, svg, t } from "./dom.js";
import { shareText } from "./data.js";

const SIZES = [10, 20, 40];

/** @param {Shown} shown */
export function frequency({ profile, state, tools }) {
  const body = h("tbody");
  const heads = [
    head(t("frequency.diagnosis"), "name", state),
    head(t("all"), "overall", state, { class: "overall" }),
    ...profile.clusters.map((cluster, j) =>
      head(String(cluster.number), String(cluster.number), state, clusterMarks(j), cluster.name),
    ),
    head(t("frequency.spread"), "spread", state, {}, t("frequency.spread.how")),
  ];
  const table = h(
    "table",
    { class: profile.clusters.length > 12 ? "bars dense" : "bars" },
    h("caption", { class: "unseen" }, t("frequency.title")),
    roveFocus(h("thead", {}, h("tr", {}, ...heads.map(({ cell }) => cell))), "button"),
    roveFocus(body, "th"),
  );

  function draw() {
    const codes = sorted(
      profile,
      profile.page.common.slice(0, state.get("rows")),
      state.get("sort"),
    );
    body.replaceChildren(...codes.map((i) => row(profile, i, tools)));
    for (const { key, cell } of heads) {
      if (key === state.get("sort")) {
        cell.setAttribute("aria-sort", key === "name" ? "ascending" : "descending");
      } else cell.removeAttribute("aria-sort");
    }
  }

  state.watch("sort", draw);
  state.watch("rows", draw);
  draw();
  return section(
    "frequency",
    h("div", { class: "controls" }, sizeChooser(state), leftOut(profile)),
    scrollBox(t("frequency.title"), table),
  );
}

/** @param {State} state */
function head(text, key, state, marks = {}, title = "") {
  const sorter = button(text, () => state.set("sort", key), { title: title || null });
  return { key, cell: h("th", { scope: "col", ...marks }, sorter) };
}

function clusterMarks(j) {
  return { class: "cluster", ...ofCluster(j) };
}

/** @param {Profile} profile @param {Tools} tools */
function row(profile, i, tools) {
  const values = profile.clusters.map((_, j) => profile.prevalence[j][i]);
  return h(
    "tr",
    { "data-code": i },
    h("th", { scope: "row", tabindex: 0 }, profile.labels[i], tools.codeControl?.(i)),
    bar(profile.overall[i], shareText(profile, null, i), null, { class: "overall" }),
    ...values.map((value, j) =>
      bar(value, shareText(profile, j, i), profile.overall[i], clusterMarks(j)),
    ),
    h("td", { class: "num quiet" }, points(spread(values))),
  );
}

function bar(share, text, overall, marks) {
  const width = 100 * (share ?? 0);
  const drawing = svg(
    "svg",
    { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: share === null ? "track gone" : "track", width: 100, height: 10 }),
    svg("rect", { class: "fill", width, height: 10 }),
    overall === null
      ? null
      : svg("line", { class: "tick", x1: 100 * overall, x2: 100 * overall, y1: 0, y2: 10 }),
  );
  return h("td", marks, drawing, h("span", { class: "num" }, text));
}

// The highest share that is shown less the lowest; null when fewer than two are.
function spread(values) {
  const seen = values.filter((value) => value !== null);
  return seen.length > 1 ? Math.max(...seen) - Math.min(...seen) : null;
}

function points(share) {
  return share === null ? t("hidden") : String(Math.round(100 * share));
}

/** @param {Profile} profile */
function sorted(profile, codes, sort) {
  const value = {
    name: null,
    overall: (i) => profile.overall[i],
    spread: (i) => spread(profile.prevalence.map((row) => row[i])) ?? -1,
  }[sort];
  const place = profile.clusters.findIndex((cluster) => cluster.number === Number(sort));
  const by = value ?? ((i) => profile.prevalence[place]?.[i] ?? -1);
  if (sort === "name")
    return codes.sort((a, b) => profile.labels[a].localeCompare(profile.labels[b]));
  return codes.sort((a, b) => by(b) - by(a));
}

/** @param {State} state */
function sizeChooser(state) {
  const choose = (event) => state.set("rows", Number(event.target.value));
  const options = SIZES.map((n) =>
    h("option", { value: n, selected: n === state.get("rows") }, String(n)),
  );
  return h("label", {}, `${t("frequency.rows")} `, h("select", { change: choose }, ...options));
}

/** @param {Profile} profile */
function leftOut(profile) {
  const names = profile.page.universal.map((i) => profile.labels[i]);
  if (!names.length) return null;
  return h(
    "span",
    { class: "quiet" },
    t("frequency.universal", { names: names.slice(0, 3).join(", ") }),
  );
}
