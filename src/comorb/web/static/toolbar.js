// The tools above a result: its cohort, the number of clusters, comparing, keeping, sharing.

import { count, h, jumpTo, t } from "/page/dom.js";
import { chip } from "./codes.js";
import { ask, call, doing, frame, get, may, tell, waiting, when } from "./frame.js";
import { addressOf, described, facts, leftOut, namesOf } from "./rules.js";
import { share } from "./share.js";
import { again } from "./tune.js";
import { viewed, viewSwitch } from "./view.js";

const NARROW = 640; // pixels of a window in which the tools are put away at first

export async function toolbar(run, profile) {
  const runs = (await get("/api/v1/runs")).filter((row) => row.state === "done" && row.id !== run.id);
  return h(
    "div",
    { class: "tools", role: "region", "aria-label": t("tools") },
    definition(run, profile),
    h("details", { open: window.innerWidth > NARROW }, h("summary", {}, t("tools")), controls(run, profile, runs)),
  );
}

function controls(run, profile, runs) {
  return h(
    "div",
    { class: "controls" },
    may("analyst") ? number(run) : null,
    runs.length ? comparer(run, runs) : null,
    may("analyst") && !run.within ? h("a", { class: "button", href: addressOf(run.data, run.rules, run.k) }, t("run.change")) : null,
    viewSwitch(profile.min_cell ? "protected" : "full"),
    may("analyst") ? h("button", { type: "button", click: () => jumpTo("arrive") }, t("arrive.short")) : null,
    h("button", { type: "button", click: () => jumpTo("why") }, t("why.short")),
    h("button", { type: "button", title: t("pack.how"), click: doing(() => pack(run)) }, t("pack")),
    h("button", { type: "button", click: () => download(run) }, t("download")),
    ...(run.mine && may("analyst") ? own(run) : []),
    (run.mine && may("analyst")) || may("exporter") ? h("button", { type: "button", click: doing(() => duplicate(run)) }, t("duplicate")) : null,
    run.mine && may("analyst") ? h("button", { type: "button", click: doing(() => remove(run)) }, t("delete")) : null,
  );
}

// The cohort of a run: with codes at once, and with their names when these are there.
function definition(run, profile) {
  const { having = [], without = [], drop_codes: dropped = [] } = run.rules;
  const place = h("div", { class: "definition" }, ...definitionParts(run, profile, {}));
  const named = namesOf(run, profile, [...having, ...without, ...dropped]);
  named.then((names) => place.replaceChildren(...definitionParts(run, profile, names)));
  return place;
}

function definitionParts(run, profile, names) {
  const { rules } = run;
  const dropped = rules.drop_codes ?? [];
  const left = dropped.map((code) => {
    const back = doing(() => again(run, { rules: { ...rules, drop_codes: dropped.filter((one) => one !== code) } }));
    return chip(code, names[code] ?? "", may("analyst") ? back : null, t("tune.put_back", { name: names[code] ?? code }));
  });
  return [
    h("ul", { class: "rules" }, h("li", {}, h("strong", {}, count(profile.source.records)), ` ${t("records", { n: count(profile.source.records) })}`), ...described(run, names).map((part) => h("li", {}, part))),
    left.length ? h("div", { class: "left" }, h("span", { class: "quiet" }, t("rule.drop_codes")), h("ul", { class: "chips" }, ...left)) : null,
  ].filter(Boolean);
}

function number(run) {
  const go = (k) => doing(() => again(run, { k }));
  const change = (step, label) => h("button", { type: "button", "aria-label": label, title: label, disabled: run.clusters + step < 1, click: go(run.clusters + step) }, step < 0 ? "−" : "+");
  return h(
    "span",
    { class: "k" },
    `${t("k.label")} `,
    change(-1, t("k.fewer")),
    h("strong", {}, String(run.clusters)),
    change(1, t("k.more")),
    run.k === "auto" ? null : h("button", { type: "button", click: go("auto") }, t("cohort.auto")),
  );
}

function comparer(run, runs) {
  const choose = (event) => event.target.value && window.location.assign(viewed(`/compare/${run.id}/${event.target.value}`));
  const options = runs.map((row) => h("option", { value: row.id }, [row.title, facts(row), ...leftOut(row), when(row.created)].join(" · ")));
  return h("select", { "aria-label": t("compare.with"), change: choose }, h("option", { value: "" }, t("compare.with")), ...options);
}

// PDF, slides and workbook in one file, with protected counts.
async function pack(run) {
  tell(waiting(t("pack.making")));
  const response = await fetch(`/api/v1/runs/${run.id}/download/board.zip`).catch(() => null);
  if (!response?.ok) throw new Error((await response?.json().catch(() => null))?.error ?? t("error.network"));
  const address = URL.createObjectURL(await response.blob());
  h("a", { href: address, download: "board.zip" }).click();
  URL.revokeObjectURL(address);
  tell(t("pack.done"));
}

// Results are protected in every download, unless full counts are asked for.
function download(run) {
  const address = (name, view) => viewed(`/api/v1/runs/${run.id}/download/${name}`, view);
  const link = (name) => h("li", {}, h("a", { href: address(name, ""), download: name }, name), h("span", { class: "quiet" }, t(`download.${name.split(".")[0]}`)));
  const results = h("ul", { class: "files" }, ...run.downloads.aggregates.map(link));
  const choose = (event) => {
    for (const one of results.querySelectorAll("a")) one.href = address(one.download, event.target.checked ? "full" : "");
  };
  const full = may("exporter") ? h("label", {}, h("input", { type: "checkbox", change: choose }), ` ${t("download.full")}`) : null;
  const patients = may("exporter")
    ? [h("h3", {}, t("download.patients")), h("p", { class: "quiet" }, t("download.patients.how")), h("ul", { class: "files" }, ...run.downloads.patients.map(link))]
    : [];
  const how = h("p", { class: "quiet" }, t("download.protected", { n: frame.minCell }));
  ask(t("download"), [h("h3", {}, t("download.aggregates")), how, full, results, ...patients]);
}

function own(run) {
  const title = async () => {
    const given = await ask(t("rename"), [h("label", {}, t("rename.title"), h("input", { name: "title", value: run.title, required: true, maxlength: 200 }))], t("save"));
    if (given) await changed(run, { title: given.title });
  };
  return [
    h("button", { type: "button", click: doing(title) }, t("rename")),
    h("button", { type: "button", "aria-pressed": String(run.shared), title: t("share.how"), click: doing(() => share(run)) }, t(run.shared ? "shared" : "share")),
  ];
}

async function changed(run, change) {
  await call("PATCH", `/api/v1/runs/${run.id}`, change);
  window.location.reload();
}

async function duplicate(run) {
  const copy = await call("POST", `/api/v1/runs/${run.id}/duplicate`);
  window.location.assign(viewed(`/runs/${copy.id}`));
}

async function remove(run) {
  await call("DELETE", `/api/v1/runs/${run.id}`);
  window.location.assign(`/?deleted=runs/${run.id}`);
}
