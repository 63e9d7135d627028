// Two runs side by side: where the patients went, which clusters match, what differs.

import { colourOf } from "/page/data.js";
import { clusterChip, h, number, percent, plainTable, scrollBox, section, t } from "/page/dom.js";
import { columnName } from "/page/outcomes.js";
import { figureOf } from "/page/scale.js";
import { assets, frame, get, page, startPage, trail } from "./frame.js";
import { describeRules, facts, leftOut } from "./definition.js";
import { recordCount, viewSwitch, withView } from "./view.js";

startPage(async () => {
  const compared = await get(withView(`/api/v1/compare/${frame.key}`));
  const profiles = await Promise.all(
    compared.runs.map((run) => get(withView(`/api/v1/runs/${run.id}/profile`, compared.view))),
  );
  const sides = compared.runs.map((run, i) => ({ run, profile: profiles[i], letter: "AB"[i] }));
  trail([t("home.title"), "/"], [t("compare.title")]);
  page.replaceChildren(
    h(
      "main",
      {},
      h("h1", {}, t("compare.title")),
      h("p", { class: "controls" }, viewSwitch(compared.view)),
      h("div", { class: "halves" }, ...sides.map(head)),
      compared.ari === null
        ? h("p", { class: "notice" }, t("compare.apart"))
        : h(
            "p",
            {},
            h("strong", {}, t("compare.ari", { ari: number(compared.ari, 2) })),
            ` ${t("compare.ari.how")}`,
          ),
      matches(compared, sides),
      compared.flows ? flows(compared, sides) : null,
      differences(compared, sides),
      h("p", { class: "quiet" }, t(`view.${compared.view}.how`, { n: frame.minCell })),
    ),
  );
});

function named(side, j) {
  const cluster = side.profile.clusters[j];
  return h(
    "span",
    { class: "named", vars: { "--c": colourOf(assets.palette, cluster) } },
    clusterChip(cluster),
    h("span", {}, cluster.name),
  );
}

function head(side) {
  const { run, profile, letter } = side;
  const shown = { ...run, records: profile.source.records };
  return h(
    "div",
    { class: "side" },
    h("h2", {}, `${letter} · `, h("a", { href: withView(`/runs/${run.id}`) }, run.title)),
    h("p", {}, [facts(shown), ...describeRules(run), ...leftOut(run)].join(" · ")),
  );
}

// A row for all records and for each pair: how alike they are, their sizes and outcomes in A and in B.
function matches(compared, [one, two]) {
  const names = shownOutcomes(one, two);
  const heads = [
    t("matches.a"),
    t("matches.b"),
    t("matches.match"),
    t("matches.size"),
    ...names.map(columnName),
  ];
  const cells = (a, b) => [
    sizes(one, a, two, b),
    ...names.map((name) => both(figureOf(one.profile, name), a, figureOf(two.profile, name), b)),
  ];
  const ends = [one, two].map(({ profile }) => profile.clusters.length);
  const all = h(
    "tr",
    { class: "overall" },
    h("th", { scope: "row", colspan: 2 }, t("all")),
    h("td", {}),
    ...cells(...ends),
  );
  const pairs = compared.pairs.map(([a, b], i) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, named(one, a)),
      h("td", {}, named(two, b)),
      matchCell(compared.matches[i]),
      ...cells(a, b),
    ),
  );
  const alone = [one, two].flatMap((side, which) => {
    const matched = new Set(compared.pairs.map((pair) => pair[which]));
    return side.profile.clusters
      .map((_, j) => j)
      .filter((j) => !matched.has(j))
      .map((j) => unmatched(side, which, j, names));
  });
  const table = h(
    "table",
    { class: "plain matches" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ...heads.map((text, i) => h("th", { scope: "col", class: i > 2 ? "num" : null }, text)),
      ),
    ),
    h("tbody", {}, ...pairs, ...alone),
    h("tfoot", {}, all),
  );
  return section("matches", scrollBox(t("matches.title"), table));
}

// Those that were starred in either run, and what is usual, as far as both have them.
function shownOutcomes(one, two) {
  const starred = [...(one.run.starred ?? []), ...(two.run.starred ?? [])];
  const wanted = new Set([...starred, "died", "readmitted", "los", "cost", "age"]);
  return [...wanted].filter((name) => {
    const [first, second] = [figureOf(one.profile, name), figureOf(two.profile, name)];
    return first && second && first.kind === second.kind;
  });
}

function matchCell({ likeness, word }) {
  return h(
    "td",
    { class: word === "poor" ? "doubtful" : null },
    `${t(`matches.${word.replace(" ", "_")}`)} `,
    h("span", { class: "quiet" }, number(likeness, 2)),
  );
}

function unmatched(side, which, j, names) {
  const own = side.profile;
  const empty = h("td", { class: "quiet" }, t("matches.none"));
  const first = h("th", { scope: "row" }, which ? null : named(side, j));
  const figure = (name) => {
    const found = figureOf(own, name);
    return h("td", { class: "num" }, written(found, found?.estimate[j]));
  };
  return h(
    "tr",
    {},
    ...(which
      ? [h("td", { class: "quiet" }, t("matches.none")), h("th", { scope: "row" }, named(side, j))]
      : [first, empty]),
    h("td", {}),
    h(
      "td",
      { class: "num" },
      `${recordCount(own.clusters[j].size)} · ${percent(own.clusters[j].share)}`,
    ),
    ...names.map(figure),
  );
}

function sizes(one, a, two, b) {
  const part = ({ profile }, j) =>
    j === profile.clusters.length
      ? recordCount(profile.source.records)
      : percent(profile.clusters[j].share, 1);
  return h("td", { class: "num" }, `${part(one, a)} → ${part(two, b)}`);
}

function written(figure, x) {
  return figure?.kind === "share" ? percent(x, 1) : number(x, 1);
}

// An outcome in A and in B; strong where the 95% intervals lie apart.
function both(first, a, second, b) {
  const range = (figure, j) =>
    figure.low[j] === null
      ? ""
      : `${written(figure, figure.low[j])} – ${written(figure, figure.high[j])}`;
  const text = `${written(first, first.estimate[a])} → ${written(second, second.estimate[b])}`;
  const apart =
    first.low[a] !== null &&
    second.low[b] !== null &&
    (first.low[a] > second.high[b] || first.high[a] < second.low[b]);
  return h(
    "td",
    { class: "num", title: `A ${range(first, a)}; B ${range(second, b)}` },
    apart ? h("strong", {}, text) : text,
  );
}

function flows(compared, [one, two]) {
  const most = Math.max(...compared.flows.flat().map((value) => value ?? 0));
  const cell = (value) =>
    h(
      "td",
      { class: "num flow", vars: { "--share": value ? Math.sqrt(value / most) : 0 } },
      value === 0 ? "" : recordCount(value),
    );
  const heads = two.profile.clusters.map((_, j) => h("th", { scope: "col" }, named(two, j)));
  const rows = compared.flows.map((row, i) =>
    h("tr", {}, h("th", { scope: "row" }, named(one, i)), ...row.map(cell)),
  );
  return section(
    "flows",
    h("p", {}, t("flows.shared", { n: recordCount(compared.shared) })),
    scrollBox(t("flows.title"), plainTable("flows", [h("td", {}, "A ↓  B →"), ...heads], rows)),
  );
}

function differences(compared, [one, two]) {
  const heads = compared.pairs.map(([a, b]) =>
    h("th", { scope: "col" }, named(one, a), "↓", named(two, b)),
  );
  const most = Math.max(
    0.05,
    ...compared.codes.flatMap((code) => code.differences.map((value) => Math.abs(value ?? 0))),
  );
  const cell = (value) => {
    if (value === null) return h("td", { class: "num quiet" }, t("hidden"));
    const size = number(100 * Math.abs(value), 0);
    const points = Math.abs(value) < 0.005 ? "0" : `${value >= 0 ? "+" : "−"}${size}`;
    return h(
      "td",
      { class: "num" },
      h(
        "span",
        {
          class: `speaks ${value >= 0 ? "more" : "less"}`,
          vars: { "--size": Math.abs(value) / most },
        },
        points,
      ),
    );
  };
  const rows = compared.codes.map((code) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, h("code", {}, code.code), ` ${code.label}`),
      ...code.differences.map(cell),
    ),
  );
  return section(
    "differences",
    scrollBox(t("differences.title"), plainTable("plain", [h("td", {}), ...heads], rows)),
  );
}
