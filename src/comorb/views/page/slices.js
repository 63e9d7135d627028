// Slices: the share of each cluster by age, sex, site, time or what is chosen, the clusters being fixed.

import {
  clusterChip,
  h,
  hasText,
  listNames,
  number,
  ofCluster,
  percent,
  present,
  scrollBox,
  section,
  t,
  term,
} from "./dom.js";
import { countText, shareBand } from "./data.js";
import { valueName } from "./outcomes.js";
import { dotFigures, lineFigures, stackedBars } from "./shares.js";

const TIMED = ["month", "quarter", "year"];

/** @param {Shown} shown */
export function slices({ profile, state, tools }) {
  const offered = tools.splits ?? (profile.slices ?? []).map((cut) => cut.by);
  if (!offered.length) return null;
  const body = h("div", { class: "split", "aria-live": "polite" });
  const usual =
    profile.slices?.map((cut) => cut.by).find((by) => offered.includes(by)) ?? offered[0];
  const chosen = () => (offered.includes(state.get("split")) ? state.get("split") : usual);
  const select = h(
    "select",
    { change: (event) => state.set("split", event.target.value) },
    ...offered.map((by) => h("option", { value: by, selected: by === chosen() }, sliceName(by))),
  );
  let latest = 0;

  async function draw() {
    const by = chosen();
    latest += 1;
    const turn = latest;
    let cut = profile.slices?.find((one) => one.by === by);
    if (tools.split) {
      body.replaceChildren(
        h(
          "p",
          { role: "status" },
          h("progress", { "aria-label": t("slices.wait") }),
          ` ${t("slices.wait")}`,
        ),
      );
      try {
        cut = await tools.split(by);
      } catch (error) {
        if (turn === latest)
          body.replaceChildren(h("p", { class: "notice wrong", role: "alert" }, error.message));
        return;
      }
      if (turn !== latest) return;
    }
    if (cut) body.replaceChildren(...views(profile, cut, by, state, tools));
  }

  state.watch("split", draw);
  state.watch("mix", draw);
  const part = section(
    "slices",
    h("div", { class: "controls" }, h("label", {}, `${t("slices.by")} `, select)),
    body,
  );
  if (tools.split && !state.get("split")) whenSeen(part, draw);
  else draw();
  return part;
}

// Ask for slices once they come near to the window: the first view doesn't wait for them.
function whenSeen(part, call) {
  const watch = new IntersectionObserver(
    ([entry]) => {
      if (!entry.isIntersecting) return;
      watch.disconnect();
      call();
    },
    { rootMargin: "300px" },
  );
  watch.observe(part);
}

export function sliceName(by) {
  const [name] = by.split(":");
  const plain = name.replaceAll("_", " ");
  if (hasText(`slices.${name}`)) return t(`slices.${name}`);
  return plain.charAt(0).toUpperCase() + plain.slice(1);
}

/** @param {Profile} profile @param {Slices} cut @param {State} state @param {Tools} tools */
function views(profile, cut, by, state, tools) {
  const even = cut.mix.length > 0 && state.get("mix") === "same";
  const shares = shownShares(cut, even);
  const { only, slice } = tools;
  const open = only ? (label) => only(by, label) : null;
  const current = slice && slice.by === by ? slice.label : null;
  const timed = TIMED.includes(cut.by);
  return present([
    h(
      "div",
      { class: "controls" },
      cut.mix.length ? mixChooser(cut, even, state) : null,
      open ? h("span", { class: "quiet" }, t("slices.open")) : null,
    ),
    furthest(profile, cut, shares),
    timed ? lineFigures(profile, cut, shares, true) : null,
    stackedBars(profile, cut, shares, open, current),
    h("h3", {}, t("slices.each")),
    timed ? lineFigures(profile, cut, shares, false) : dotFigures(profile, cut, shares),
    h("details", {}, h("summary", {}, t("slices.numbers")), sliceTable(profile, cut)),
    ...cut.notes.map((note) => h("p", { class: "quiet" }, note)),
  ]);
}

// The shares to show with their intervals: as they are, or with the mix of age and sex of all.
/** @param {Slices} cut */
function shownShares(cut, even) {
  if (!even) return { share: cut.share, low: cut.low, high: cut.high };
  const moved = (sign) =>
    cut.standardised.map((row, s) =>
      row.map((x, j) =>
        x === null || !cut.half || cut.half[s][j] === null
          ? null
          : Math.min(Math.max(x + sign * cut.half[s][j], 0), 1),
      ),
    );
  return { share: cut.standardised, low: moved(-1), high: moved(1) };
}

// The cluster whose share differs most from slice to slice, where the intervals of both lie apart.
/** @param {Profile} profile @param {Slices} cut @param {any} part2 */
function furthest(profile, cut, { share, low, high }) {
  const spans = profile.clusters.map((cluster, j) => {
    const known = cut.labels
      .map((_, s) => s)
      .filter((s) => share[s][j] !== null && low[s][j] !== null)
      .sort((a, b) => share[a][j] - share[b][j]);
    const [least, most] = [known[0], known[known.length - 1]];
    const apart = known.length > 1 && low[most][j] > high[least][j];
    return { cluster, j, least, most, size: apart ? share[most][j] - share[least][j] : 0 };
  });
  const { cluster, j, least, most, size } = spans.reduce((a, b) => (b.size > a.size ? b : a));
  if (!size) return h("p", {}, t("slices.alike"));
  const text = t("slices.furthest", {
    n: cluster.number,
    name: cluster.name,
    most: percent(share[most][j]),
    where: valueName(cut.labels[most]),
    least: percent(share[least][j]),
    other: valueName(cut.labels[least]),
  });
  return h("ul", { class: "findings" }, h("li", ofCluster(j), text));
}

/** @param {Slices} cut */
function mixNames(cut) {
  return listNames(cut.mix.map((name) => t(`slices.${name}`).toLowerCase()));
}

/** @param {Slices} cut @param {State} state */
function mixChooser(cut, even, state) {
  const choice = (value, text, on) =>
    h(
      "label",
      {},
      h("input", {
        type: "radio",
        name: "mix",
        value,
        checked: on,
        change: () => state.set("mix", value),
      }),
      ` ${text}`,
    );
  return h(
    "fieldset",
    {},
    h("legend", { class: "unseen" }, t("slices.mix")),
    choice("", t("slices.raw"), !even),
    choice("same", t("slices.same", { mix: mixNames(cut) }), even),
  );
}

/** @param {Profile} profile @param {Slices} cut */
function sliceTable(profile, cut) {
  const all = profile.clusters.length;
  const heads = profile.clusters.map((cluster, j) =>
    h(
      "th",
      { scope: "col", class: "num", title: cluster.name, vars: { "--c": `var(--cluster-${j})` } },
      clusterChip(cluster),
    ),
  );
  const rows = cut.labels.map((label, s) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, valueName(label)),
      h("td", { class: "num quiet" }, countText(profile, cut.counts[s][all])),
      ...profile.clusters.map((_, j) => sliceCell(profile, cut, s, j)),
    ),
  );
  const test = h(
    "tr",
    { class: "quiet" },
    h("th", { scope: "row" }, term("p", t(cut.ordered ? "slices.trend" : "slices.difference"))),
    h("td", {}),
    ...profile.clusters.map((_, j) => h("td", { class: "num" }, chance(cut, j))),
  );
  const table = h(
    "table",
    { class: "plain slices" },
    h("caption", {}, sliceName(cut.by)),
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, sliceName(cut.by)),
        h("th", { scope: "col", class: "num" }, t("burden.unit.records")),
        ...heads,
      ),
    ),
    h("tbody", {}, ...rows, test),
  );
  return scrollBox(
    sliceName(cut.by),
    table,
    cut.mix.length
      ? h("p", { class: "quiet" }, t("slices.standardised", { mix: mixNames(cut) }))
      : null,
  );
}

/** @param {Profile} profile @param {Slices} cut */
function sliceCell(profile, cut, s, j) {
  const share = cut.share[s][j];
  const text = shareBand(profile, share, cut.counts[s][j], cut.counts[s][profile.clusters.length]);
  const range =
    cut.low[s][j] === null ? null : `${percent(cut.low[s][j], 1)} – ${percent(cut.high[s][j], 1)}`;
  const even = cut.standardised[s][j];
  return h(
    "td",
    {
      class: "num",
      title: range,
      "data-cluster": j,
      vars: { "--c": `var(--cluster-${j})`, "--share": share ?? 0 },
    },
    text,
    cut.mix.length && even !== null ? h("span", { class: "quiet" }, ` (${percent(even)})`) : null,
    h("span", { class: "meter", vars: { "--share": share ?? 0 } }),
  );
}

/** @param {Slices} cut */
function chance(cut, j) {
  const [p, z] = [cut.p[j], cut.z[j]];
  if (p === null) return "–";
  const sign = z === null ? "" : z > 0 ? "↑ " : "↓ ";
  return `${sign}${p < 0.001 ? `< ${number(0.001, 3)}` : number(p, 3)}`;
}
