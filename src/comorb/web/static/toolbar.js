// The tools above a result: its cohort, the number of clusters, comparing, keeping, sharing.

import { count, h, t } from "/page/dom.js";
import { chip } from "./codes.js";
import { ask, call, doing, get, may } from "./frame.js";
import { jumpTo } from "./keys.js";
import { again } from "./tune.js";

const PATIENTS = ["assignments.csv", "assignments.parquet", "model.comorb"];
const FILES = ["report.html", "report.pdf", "profile.csv", "profile.json", "frequency.svg", "frequency.png", "heatmap.svg", "heatmap.png", "sizes.svg", "sizes.png"];

export async function toolbar(run, profile) {
  const runs = (await get("/api/v1/runs")).filter((row) => row.state === "done" && row.id !== run.id);
  return h(
    "div",
    { class: "tools", role: "region", "aria-label": t("tools") },
    definition(run, profile),
    h(
      "div",
      { class: "controls" },
      may("analyst") ? number(run) : null,
      runs.length ? comparer(run, runs) : null,
      h("button", { type: "button", click: () => jumpTo("why") }, t("why.short")),
      h("button", { type: "button", click: () => download(run) }, t("download")),
      ...(run.mine && may("analyst") ? own(run) : []),
      may("analyst") ? h("button", { type: "button", click: doing(() => duplicate(run)) }, t("duplicate")) : null,
      run.mine && may("analyst") ? h("button", { type: "button", click: doing(() => remove(run)) }, t("delete")) : null,
    ),
  );
}

function definition(run, profile) {
  const { rules } = run;
  const parts = [h("li", {}, h("strong", {}, count(profile.source.records)), ` ${t("records")}`)];
  const add = (key, values) => parts.push(h("li", {}, t(`rule.${key}`, values)));
  if (rules.having?.length) add("having", { codes: rules.having.join(", ") });
  if (rules.without?.length) add("without", { codes: rules.without.join(", ") });
  if (rules.age) add("age", { from: rules.age[0] ?? "", to: rules.age[1] ?? "" });
  if (rules.sex?.length) add("sex", { values: rules.sex.join(", ") });
  if (rules.dates) add("dates", { from: rules.dates[0] ?? "", to: rules.dates[1] ?? "" });
  add("at_least", { n: rules.at_least });
  if (run.merge) add("merge", { a: run.merge[0] + 1, b: run.merge[1] + 1 });
  const left = (rules.drop_codes ?? []).map((code) => {
    const back = doing(() => again(run, { rules: { ...rules, drop_codes: rules.drop_codes.filter((one) => one !== code) } }));
    return chip(code, "", may("analyst") ? back : null);
  });
  return h(
    "div",
    { class: "definition" },
    h("ul", { class: "rules" }, ...parts),
    left.length ? h("ul", { class: "chips" }, h("li", { class: "quiet" }, t("rule.drop_codes")), ...left) : null,
  );
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
  const choose = (event) => event.target.value && window.location.assign(`/compare/${run.id}/${event.target.value}`);
  const options = runs.map((row) => h("option", { value: row.id }, `${row.title} · ${row.clusters}`));
  return h("select", { "aria-label": t("compare.with"), change: choose }, h("option", { value: "" }, t("compare.with")), ...options);
}

function download(run) {
  const link = (name) => h("li", {}, h("a", { href: `/api/v1/runs/${run.id}/download/${name}`, download: name }, name), h("span", { class: "quiet" }, t(`download.${name.split(".")[0]}`)));
  const patients = may("exporter")
    ? [h("h3", {}, t("download.patients")), h("p", { class: "quiet" }, t("download.patients.how")), h("ul", { class: "files" }, ...PATIENTS.map(link))]
    : [];
  ask(t("download"), [h("h3", {}, t("download.aggregates")), h("ul", { class: "files" }, ...FILES.map(link)), ...patients]);
}

function own(run) {
  const title = async () => {
    const given = await ask(t("rename"), [h("label", {}, t("rename.title"), h("input", { name: "title", value: run.title, required: true, maxlength: 200 }))], t("save"));
    if (given) await changed(run, { title: given.title });
  };
  return [
    h("button", { type: "button", click: doing(title) }, t("rename")),
    h("button", { type: "button", "aria-pressed": String(run.shared), title: t("share.how"), click: doing(() => changed(run, { shared: !run.shared })) }, t(run.shared ? "shared" : "share")),
  ];
}

async function changed(run, change) {
  await call("PATCH", `/api/v1/runs/${run.id}`, change);
  window.location.reload();
}

async function duplicate(run) {
  const copy = await call("POST", `/api/v1/runs/${run.id}/duplicate`);
  window.location.assign(`/runs/${copy.id}`);
}

async function remove(run) {
  if (!window.confirm(t("delete.sure", { name: run.title }))) return;
  await call("DELETE", `/api/v1/runs/${run.id}`);
  window.location.assign("/");
}
