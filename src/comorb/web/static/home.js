// The first page: open data, or go back to a run.

import { button, count, h, t } from "/page/dom.js";
import {
  call,
  dateTime,
  frame,
  get,
  handle,
  may,
  notify,
  page,
  startPage,
  titleOf,
} from "./frame.js";
import { describeRules, facts, leftOut } from "./definition.js";
import { uploadField } from "./upload.js";

startPage(async () => {
  document.title = `${t("home.title")} · comorb`;
  const [data, runs] = await Promise.all([get("/api/v1/data"), get("/api/v1/runs")]);
  page.replaceChildren(
    h(
      "main",
      { class: "home" },
      h("h1", {}, t("home.title")),
      h("p", { class: "how" }, t("home.how")),
      h("div", { class: "halves" }, may("analyst") ? opening(data) : null, listing(data, runs)),
    ),
  );
  notifyDeleted();
});

function opening(data) {
  return h(
    "section",
    { "aria-labelledby": "open-title" },
    h("h2", { id: "open-title" }, t("open.title")),
    dropZone(),
    h("ul", { class: "sources" }, ...data.map(source)),
  );
}

function source(row) {
  const known =
    row.about && !row.refused
      ? t("data.size", { records: count(row.about.records), codes: count(row.about.features) })
      : t(`kind.${row.kind}.how`);
  const about = row.refused ? t("data.refused") : known;
  return h(
    "li",
    {},
    h(
      "a",
      { href: `/data/${row.id}` },
      h("strong", {}, titleOf(row)),
      h("span", { class: "quiet" }, about),
    ),
    h("span", { class: "tag" }, t(`kind.${row.kind}`)),
    row.kind === "upload"
      ? button(
          "×",
          handle(() => remove(`data/${row.id}`)),
          { "aria-label": t("delete.named", { name: row.title }), title: t("delete") },
        )
      : null,
  );
}

// A file is sent, and its page opened.
function dropZone() {
  const sender = uploadField((row) => window.location.assign(`/data/${row.id}`));
  const zone = h(
    "div",
    { class: "drop" },
    h("label", { for: "file", class: "button primary" }, t("open.choose")),
    sender.input,
    h("p", {}, t("open.drop")),
    sender.bar,
    sender.state,
  );
  for (const kind of ["dragover", "dragleave", "drop"]) {
    zone.addEventListener(kind, (event) => {
      event.preventDefault();
      zone.classList.toggle("over", kind === "dragover");
      if (kind === "drop") sender.send(/** @type {DragEvent} */ (event).dataTransfer?.files[0]);
    });
  }
  return zone;
}

function listing(data, runs) {
  const titles = Object.fromEntries(data.map((row) => [row.id, titleOf(row)]));
  return h(
    "section",
    { "aria-labelledby": "runs-title" },
    h("h2", { id: "runs-title" }, t("runs.title")),
    runs.length
      ? comparer(runs)
      : h("p", { class: "quiet" }, t(may("analyst") ? "runs.none" : "runs.none.viewer")),
    h("ul", { class: "sources" }, ...runs.map((row) => runLine(row, titles))),
  );
}

function runLine(row, titles) {
  return h(
    "li",
    {},
    h(
      "a",
      { href: `/runs/${row.id}` },
      h("strong", {}, row.title),
      h(
        "span",
        { class: "quiet" },
        [
          row.state === "done" ? facts(row) : t(`state.${row.state}`),
          ...describeRules(row),
          ...leftOut(row),
        ].join(" · "),
      ),
      h(
        "span",
        { class: "quiet" },
        [
          titles[row.data] ?? (row.owner === frame.user ? t("runs.gone") : null),
          dateTime(row.created),
        ]
          .filter(Boolean)
          .join(" · "),
      ),
    ),
    row.owner === frame.user ? null : h("span", { class: "tag" }, row.owner),
    row.shared ? h("span", { class: "tag" }, t("shared")) : null,
    row.owner === frame.user
      ? button(
          "×",
          handle(() => remove(`runs/${row.id}`)),
          { "aria-label": t("delete.named", { name: row.title }), title: t("delete") },
        )
      : null,
  );
}

function comparer(runs) {
  const done = runs.filter((row) => row.state === "done");
  if (done.length < 2) return null;
  const options = () =>
    done.map((row) =>
      h("option", { value: row.id }, `${row.title} · ${facts(row)} · ${dateTime(row.created)}`),
    );
  const one = h("select", { "aria-label": t("compare.first") }, ...options());
  const two = h("select", { "aria-label": t("compare.second") }, ...options());
  one.selectedIndex = 1;
  const go = () => window.location.assign(`/compare/${one.value}/${two.value}`);
  return h("p", { class: "controls" }, one, two, button(t("compare.short"), go));
}

async function remove(what) {
  await call("DELETE", `/api/v1/${what}`);
  window.location.assign(`/?deleted=${what}`);
}

// Say that something was deleted, and offer to bring it back; the address forgets it.
function notifyDeleted() {
  const what = new URLSearchParams(window.location.search).get("deleted");
  if (!/^(runs|data)\/\w+$/.test(what ?? "")) return;
  window.history.replaceState(null, "", "/");
  const back = async () => {
    await call("POST", `/api/v1/${what}/restore`);
    window.location.reload();
  };
  notify(t("delete.done"), false, button(t("undo"), handle(back)));
}
