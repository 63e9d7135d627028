// The tools above a result: its cohort, the number of clusters, comparing, keeping, sharing.

import { button, count, h, jumpTo, present, t } from "/page/dom.js";
import { codeChip } from "./codes.js";
import { ask, call, dateTime, frame, get, handle, may, notify, waiting } from "./frame.js";
import { addressOf, describeRules, facts, leftOut, nameCodes } from "./definition.js";
import { rerun } from "./edits.js";
import { viewSwitch, withView } from "./view.js";

const NARROW = 640; // pixels of a window in which the tools are put away at first

/** @param {Run} run @param {Profile} profile */
export async function toolbar(run, profile) {
  const runs = (await get("/api/v1/runs")).filter(
    (row) => row.state === "done" && row.id !== run.id,
  );
  return h(
    "div",
    { class: "tools", role: "region", "aria-label": t("tools") },
    definition(run, profile),
    h(
      "details",
      { open: window.innerWidth > NARROW },
      h("summary", {}, t("tools")),
      controls(run, profile, runs),
    ),
  );
}

/** @param {Run} run @param {Profile} profile */
function controls(run, profile, runs) {
  return h(
    "div",
    { class: "controls" },
    may("analyst") ? number(run) : null,
    runs.length ? comparer(run, runs) : null,
    may("analyst") && !run.within
      ? h("a", { class: "button", href: addressOf(run.data, run.rules, run.k) }, t("run.change"))
      : null,
    viewSwitch(profile.min_cell ? "protected" : "full"),
    may("analyst") ? button(t("arrive.short"), () => jumpTo("arrive")) : null,
    button(t("why.short"), () => jumpTo("why")),
    button(
      t("pack"),
      handle(() => pack(run)),
      { title: t("pack.how") },
    ),
    button(t("download"), () => download(run)),
    ...(run.mine && may("analyst") ? own(run) : []),
    (run.mine && may("analyst")) || may("exporter")
      ? button(
          t("duplicate"),
          handle(() => duplicate(run)),
        )
      : null,
    run.mine && may("analyst")
      ? button(
          t("delete"),
          handle(() => remove(run)),
        )
      : null,
  );
}

// The cohort of a run: with codes at once, and with their names when these are there.
/** @param {Run} run @param {Profile} profile */
function definition(run, profile) {
  const { having = [], without = [], drop_codes: dropped = [] } = run.rules;
  const place = h("div", { class: "definition" }, ...definitionParts(run, profile, {}));
  const named = nameCodes(run, profile, [...having, ...without, ...dropped]);
  named.then((names) => place.replaceChildren(...definitionParts(run, profile, names)));
  return place;
}

/** @param {Run} run @param {Profile} profile */
function definitionParts(run, profile, names) {
  const { rules } = run;
  const dropped = rules.drop_codes ?? [];
  const left = dropped.map((code) => {
    const back = handle(() =>
      rerun(run, { rules: { ...rules, drop_codes: dropped.filter((one) => one !== code) } }),
    );
    return codeChip(
      code,
      names[code] ?? "",
      may("analyst") ? back : null,
      t("tune.put_back", { name: names[code] ?? code }),
    );
  });
  return present([
    h(
      "ul",
      { class: "rules" },
      h(
        "li",
        {},
        h("strong", {}, count(profile.source.records)),
        ` ${t("records", { n: count(profile.source.records) })}`,
      ),
      ...describeRules(run, names).map((part) => h("li", {}, part)),
    ),
    left.length
      ? h(
          "div",
          { class: "left" },
          h("span", { class: "quiet" }, t("rule.drop_codes")),
          h("ul", { class: "chips" }, ...left),
        )
      : null,
  ]);
}

/** @param {Run} run */
function number(run) {
  const go = (k) => handle(() => rerun(run, { k }));
  const change = (step, label) =>
    button(step < 0 ? "−" : "+", go(run.clusters + step), {
      "aria-label": label,
      title: label,
      disabled: run.clusters + step < 1,
    });
  return h(
    "span",
    { class: "k" },
    `${t("k.label")} `,
    change(-1, t("k.fewer")),
    h("strong", {}, String(run.clusters)),
    change(1, t("k.more")),
    run.k === "auto" || run.k === "main" ? null : button(t("cohort.auto"), go("auto")),
    run.k === "finest" ? null : button(t("k.finest"), go("finest"), { title: t("k.finest.about") }),
  );
}

/** @param {Run} run */
function comparer(run, runs) {
  const choose = (event) =>
    event.target.value &&
    window.location.assign(withView(`/compare/${run.id}/${event.target.value}`));
  const options = runs.map((row) =>
    h(
      "option",
      { value: row.id },
      [row.title, facts(row), ...leftOut(row), dateTime(row.created)].join(" · "),
    ),
  );
  return h(
    "select",
    { "aria-label": t("compare.with"), change: choose },
    h("option", { value: "" }, t("compare.with")),
    ...options,
  );
}

/** PDF, slides and workbook in one file, with protected counts. @param {Run} run */
async function pack(run) {
  notify(waiting(t("pack.making")));
  const response = await fetch(`/api/v1/runs/${run.id}/download/board.zip`).catch(() => null);
  if (!response?.ok)
    throw new Error((await response?.json().catch(() => null))?.error ?? t("error.network"));
  const address = URL.createObjectURL(await response.blob());
  h("a", { href: address, download: "board.zip" }).click();
  URL.revokeObjectURL(address);
  notify(t("pack.done"));
}

/** Results are protected in every download, unless full counts are chosen. @param {Run} run */
function download(run) {
  const address = (name, view) => withView(`/api/v1/runs/${run.id}/download/${name}`, view);
  const link = (name) =>
    h(
      "li",
      {},
      h("a", { href: address(name, ""), download: name }, name),
      h("span", { class: "quiet" }, t(`download.${name.split(".")[0]}`)),
    );
  const results = h("ul", { class: "files" }, ...run.downloads.aggregates.map(link));
  const choose = (event) => {
    for (const one of results.querySelectorAll("a"))
      one.href = address(one.download, event.target.checked ? "full" : "");
  };
  const full = may("exporter")
    ? h("label", {}, h("input", { type: "checkbox", change: choose }), ` ${t("download.full")}`)
    : null;
  const patients = may("exporter")
    ? [
        h("h3", {}, t("download.patients")),
        h("p", { class: "quiet" }, t("download.patients.how")),
        h("ul", { class: "files" }, ...run.downloads.patients.map(link)),
      ]
    : [];
  const how = h("p", { class: "quiet" }, t("download.protected", { n: frame.minCell }));
  ask(t("download"), [h("h3", {}, t("download.aggregates")), how, full, results, ...patients]);
}

/** @param {Run} run */
function own(run) {
  const title = async () => {
    const given = await ask(
      t("rename"),
      [
        h(
          "label",
          {},
          t("rename.title"),
          h("input", { name: "title", value: run.title, required: true, maxlength: 200 }),
        ),
      ],
      t("save"),
    );
    if (given) await changed(run, { title: given.title });
  };
  return [
    button(t("rename"), handle(title)),
    button(
      t(run.shared ? "shared" : "share"),
      handle(() => share(run)),
      { "aria-pressed": String(run.shared), title: t("share.how") },
    ),
  ];
}

/** @param {Run} run */
async function changed(run, change) {
  await call("PATCH", `/api/v1/runs/${run.id}`, change);
  window.location.reload();
}

/** @param {Run} run */
async function duplicate(run) {
  const copy = await call("POST", `/api/v1/runs/${run.id}/duplicate`);
  window.location.assign(withView(`/runs/${copy.id}`));
}

/** @param {Run} run */
async function remove(run) {
  await call("DELETE", `/api/v1/runs/${run.id}`);
  window.location.assign(`/?deleted=runs/${run.id}`);
}

/** Sharing: who may read the run, the link to send, and words to send it with. @param {Run} run */
async function share(run) {
  const { origin, pathname, hash } = window.location;
  const link = `${origin}${pathname}${hash}`;
  const copied = h("p", { class: "quiet", role: "status" }, "");
  const choice = (value, on) =>
    h(
      "label",
      {},
      h("input", { type: "radio", name: "audience", value, checked: on }),
      ` ${t(`share.${value}`)}`,
    );
  const field = (name, element) => {
    element.id = `share-${name}`;
    const take = handle(async () => {
      await copy(element);
      copied.textContent = t("share.copied");
    });
    return h(
      "div",
      { class: "field" },
      h("label", { for: element.id }, t(`share.${name}`)),
      h(
        "div",
        { class: "copied" },
        element,
        button(t("share.copy"), take, { "aria-label": t(`share.copy.${name}`) }),
      ),
    );
  };
  const words = h("textarea", { rows: 3 });
  words.value = t("share.words", { title: run.title, n: run.clusters, link });
  const alone = frame.user === "local" ? h("p", { class: "notice" }, t("share.local")) : null;
  const given = await ask(
    t("share"),
    [
      h(
        "fieldset",
        { class: "stacked" },
        h("legend", {}, t("share.who")),
        choice("nobody", !run.shared),
        choice("everyone", run.shared),
      ),
      alone,
      h("p", { class: "quiet" }, t("share.how")),
      field("link", h("input", { type: "text", readonly: true, value: link })),
      field("message", words),
      copied,
    ],
    t("save"),
  );
  if (!given || (given.audience === "everyone") === run.shared) return;
  await call("PATCH", `/api/v1/runs/${run.id}`, { shared: given.audience === "everyone" });
  window.location.reload();
}

// The clipboard is for pages by https alone; elsewhere the old way does.
async function copy(element) {
  element.select();
  if (navigator.clipboard) await navigator.clipboard.writeText(element.value);
  else document.execCommand("copy");
}
