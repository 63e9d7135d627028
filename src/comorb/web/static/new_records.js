// A new file in the clusters of a run: which groups it holds, what changed, and a worklist.

import {
  button,
  clusterChip,
  count,
  h,
  number,
  ofCluster,
  percent,
  plainTable,
  present,
  scrollBox,
  section,
  t,
} from "/page/dom.js";
import { call, get, may, notify, titleOf } from "./frame.js";
import { uploadField } from "./upload.js";
import { recordCount, withView } from "./view.js";

const NAMED = 3; // clusters whose share changed most, in a sentence

/** @param {Run} run @param {Profile} profile */
export function newRecords(run, profile) {
  const choice = h("select", { id: "arrive-data" });
  const found = h("div", { class: "arrived", role: "status" });
  const go = button(t("arrive.go"), () => assign(choice.value), { class: "primary" });
  const sender = uploadField(async (row) => {
    if (row.refused)
      return notify(
        t("arrive.refused"),
        true,
        h("a", { class: "button", href: `/data/${row.id}` }, row.title),
      );
    await list(row.id);
    return assign(row.id);
  });
  sender.input.setAttribute("aria-label", t("arrive.upload"));
  sender.input.addEventListener("change", () => found.replaceChildren()); // what is shown is of another file

  async function list(chosen) {
    const rows = (await get("/api/v1/data")).filter((row) => !row.refused);
    choice.replaceChildren(
      ...rows.map((row) =>
        h(
          "option",
          { value: row.id, selected: row.id === chosen },
          row.id === run.data ? t("arrive.own", { name: titleOf(row) }) : titleOf(row),
        ),
      ),
    );
    go.disabled = !rows.length;
  }

  // The time is result while it takes; leaving, or cancelling, ends the work on the server too.
  async function assign(data) {
    const started = Date.now();
    const leave = new AbortController();
    const time = h("p", {}, t("arrive.working", { seconds: 0 }));
    const clock = window.setInterval(() => {
      time.textContent = t("arrive.working", {
        seconds: count(Math.round((Date.now() - started) / 1000)),
      });
    }, 1000);
    go.disabled = true;
    found.replaceChildren(
      h("progress", { "aria-label": t("arrive.title") }),
      time,
      h(
        "p",
        { class: "controls" },
        button(t("cancel"), () => leave.abort()),
      ),
    );
    try {
      const result = await call(
        "POST",
        withView(`/api/v1/runs/${run.id}/arrivals`),
        { data },
        leave.signal,
      );
      found.replaceChildren(
        ...answer(run, profile, data, result, choice.selectedOptions[0].textContent),
      );
    } catch (error) {
      found.replaceChildren(
        h(
          "p",
          { class: leave.signal.aborted ? "quiet" : "notice wrong" },
          leave.signal.aborted ? t("arrive.cancelled") : error.message,
        ),
      );
    } finally {
      window.clearInterval(clock);
      go.disabled = false;
    }
    found.scrollIntoView({ block: "nearest" });
  }

  list().catch((error) => notify(error.message, true));
  return section(
    "arrive",
    h(
      "div",
      { class: "field" },
      h("label", { for: "arrive-data" }, t("arrive.data")),
      h(
        "div",
        { class: "row close" },
        choice,
        go,
        h("label", { for: "file", class: "button" }, t("arrive.upload")),
        sender.input,
      ),
    ),
    sender.bar,
    sender.state,
    found,
  );
}

/** @param {Run} run @param {Profile} profile */
function answer(run, profile, data, result, title) {
  const changed = result.groups
    .filter((one) => one.changed)
    .sort((a, b) => Math.abs(b.share - b.then) - Math.abs(a.share - a.then));
  const first = changed.slice(0, NAMED);
  const named = (one) =>
    t("arrive.moved", {
      name: `${one.number} ${one.name}`,
      then: percent(one.then),
      now: percent(one.share),
    });
  const fit =
    result.fits === null ? "arrive.fits.unknown" : result.fits ? "arrive.fits" : "arrive.fits.not";
  const lines = [
    t("arrive.said", { records: recordCount(result.records), title }),
    changed.length
      ? t("arrive.changed", { groups: first.map(named).join("; ") })
      : t("arrive.same"),
    changed.length > NAMED ? t("arrive.others", { n: count(changed.length - NAMED) }) : null,
    t(fit),
  ];
  return present([
    h(
      "p",
      { class: result.fits === false || changed.length ? "answer doubtful" : "answer" },
      lines.filter(Boolean).join(" "),
    ),
    result.strange > 0.05
      ? h(
          "p",
          { class: "notice" },
          t("arrive.unknown", {
            share: percent(result.strange),
            codes: result.unknown.map((one) => one.code).join(", "),
          }),
        )
      : null,
    result.left_out
      ? h("p", { class: "quiet" }, t("arrive.left_out", { n: recordCount(result.left_out) }))
      : null,
    groupTable(profile, result),
    codeTable(result),
    may("exporter")
      ? h(
          "p",
          {},
          h(
            "a",
            {
              class: "button",
              href: `/api/v1/runs/${run.id}/worklist/${data}`,
              download: "worklist.csv",
            },
            t("arrive.worklist"),
          ),
          h("span", { class: "quiet" }, ` ${t("arrive.worklist.how")}`),
        )
      : null,
  ]);
}

/** @param {Profile} profile */
function groupTable(profile, result) {
  const heads = ["cluster", "records", "now", "then", "change", "doubtful"].map((key) =>
    h("th", { scope: "col", class: key === "cluster" ? null : "num" }, t(`arrive.${key}`)),
  );
  const rows = result.groups.map((one, j) => {
    const change = one.share === null || one.then === null ? null : 100 * (one.share - one.then);
    const points = Math.round(10 * Math.abs(change ?? 0)) / 10;
    const sign =
      change === null ? "" : `${points ? (change > 0 ? "+" : "−") : ""}${number(points, 1)}`;
    const cells = [
      recordCount(one.records),
      percent(one.share, 1),
      percent(one.then, 1),
      sign,
      recordCount(one.doubtful),
    ];
    return h(
      "tr",
      { class: one.changed ? "doubtful" : null, ...ofCluster(j) },
      h("th", { scope: "row" }, clusterChip(one), ` ${profile.clusters[j]?.name ?? one.name}`),
      ...cells.map((text, i) =>
        h(
          "td",
          { class: "num" },
          text,
          i === 3 && one.changed ? h("span", { class: "mark" }, ` ${t("arrive.mark")}`) : "",
        ),
      ),
    );
  });
  return scrollBox(t("arrive.title"), plainTable("plain", heads, rows));
}

function codeTable(result) {
  if (!result.codes.length) return null;
  const rows = result.codes.map((one) =>
    h(
      "tr",
      {},
      h("td", {}, h("code", {}, one.code)),
      h("td", {}, one.label),
      h("td", { class: "num" }, percent(one.now, 1)),
      h("td", { class: "num" }, percent(one.then, 1)),
    ),
  );
  return h(
    "details",
    {},
    h("summary", {}, t("arrive.codes", { n: count(result.codes.length) })),
    plainTable(
      "plain tight",
      ["code", "diagnosis", "now", "then"].map((key) =>
        h(
          "th",
          { scope: "col", class: ["now", "then"].includes(key) ? "num" : null },
          t(`arrive.${key}`),
        ),
      ),
      rows,
    ),
  );
}
