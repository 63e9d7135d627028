// Tuning: name, look inside, merge, leave out. Each but a name makes a new run; none is changed.

import { codeCount } from "/page/data.js";
import { h, t } from "/page/dom.js";
import { columnName } from "/page/outcomes.js";
import { ask, call, doing, may, page } from "./frame.js";
import { viewed } from "./view.js";

// A run like another, with something changed; the view's settings go along in the address.
export async function again(run, change, query = "") {
  const { data, rules, title, within } = run;
  const k = run.k === "auto" ? "auto" : run.clusters;
  const made = await call("POST", "/api/v1/runs", { data, k, rules, title, within, parent: run.id, ...change });
  window.location.assign(viewed(`/runs/${made.id}${query}${window.location.hash}`));
}

export function tuned(run, profile) {
  if (!may("analyst")) return;
  for (const card of page.querySelectorAll(".card")) card.append(actions(run, profile, Number(card.dataset.cluster)));
  const mark = () => {
    for (const head of page.querySelectorAll("#frequency tbody th, #relevance li[data-code] .entry, #trust .pairs .entry")) {
      const left = head.querySelector(".leave-out") ? null : leaving(run, profile, Number(head.closest("[data-code]").dataset.code));
      if (left) head.append(leaveOut(run, left));
    }
  };
  mark();
  const watch = new MutationObserver(mark);
  for (const id of ["frequency", "relevance"]) watch.observe(page.querySelector(`#${id}`), { childList: true, subtree: true });
}

// What leaves a code out, or the feature that a sign is of, unless the table itself has it as an item.
function leaving(run, profile, i) {
  if (i < codeCount(profile)) return { name: profile.labels[i], what: profile.codes[i], rules: { drop_codes: [...(run.rules.drop_codes ?? []), profile.codes[i]] } };
  const { name } = profile.features.find((one) => one.columns.includes(i));
  const asked = run.rules.features ?? [];
  const features = asked.filter((word) => columnName(word.split("=")[0]) !== columnName(name));
  return features.length < asked.length ? { name: columnName(name), what: name, rules: { features } } : null;
}

function leaveOut(run, { name, what, rules }) {
  const label = t("tune.leave_out", { name });
  const go = () => again(run, { rules: { ...run.rules, ...rules } }, `?left_out=${encodeURIComponent(what)}`);
  return h("button", { type: "button", class: "leave-out", title: label, "aria-label": label, click: doing(go) }, "×");
}

function actions(run, profile, j) {
  const { name, number } = profile.clusters[j];
  const button = (key, work) => h("button", { type: "button", "aria-label": t(`tune.${key}.named`, { name }), click: doing(work) }, t(`tune.${key}`));
  return h(
    "div",
    { class: "actions" },
    run.mine ? button("name", () => rename(run, number, name)) : null,
    run.mine ? button("note", () => note(run, profile.clusters[j])) : null,
    button("inside", () => inside(run, number, name)),
    run.groups || run.moved ? null : button("split", () => split(run, number, name)),
    profile.clusters.length > 1 ? button("merge", () => merge(run, profile, j)) : null,
  );
}

async function rename(run, number, name) {
  const given = await ask(t("tune.name"), [h("label", {}, t("tune.name.how"), h("input", { name: "name", value: name, required: true, maxlength: 200 }))], t("save"));
  if (!given) return;
  await call("PUT", `/api/v1/runs/${run.id}/names`, { [number]: given.name });
  window.location.reload();
}

// Who looks after the patients of a cluster, and how.
async function note(run, { number, name, ...own }) {
  const line = (key) => h("label", {}, t(`note.${key}`), h("input", { name: key, value: own[key] ?? "", maxlength: 200 }));
  const text = h("textarea", { name: "note", rows: 4, maxlength: 2000 }, own.note ?? "");
  const given = await ask(t("tune.note.named", { name }), [h("p", { class: "quiet" }, t("note.how")), line("pathway"), line("owner"), h("label", {}, t("note.note"), text)], t("save"));
  if (!given) return;
  await call("PUT", `/api/v1/runs/${run.id}/notes`, { [number]: given });
  window.location.reload();
}

async function inside(run, number, name) {
  const numbers = [2, 3, 4, 5, 6, 8, 10].map((k) => h("option", { value: k, selected: k === 3 }, String(k)));
  const given = await ask(t("tune.inside.named", { name }), [h("label", {}, `${t("cohort.k")} `, h("select", { name: "k" }, h("option", { value: "auto" }, t("cohort.auto")), ...numbers))], t("cohort.run"));
  if (given) await again(run, { k: given.k === "auto" ? "auto" : Number(given.k), within: { run: run.id, cluster: number }, title: name });
}

// Finer groups of one cluster; the others stay as they are.
async function split(run, number, name) {
  const numbers = [2, 3, 4, 5, 6].map((k) => h("option", { value: k }, String(k)));
  const given = await ask(t("tune.split.named", { name }), [h("label", {}, `${t("tune.split.into")} `, h("select", { name: "k" }, ...numbers)), h("p", { class: "quiet" }, t("tune.split.how"))], t("tune.split"));
  if (given) await again(run, { split: [number, Number(given.k)] });
}

async function merge(run, profile, j) {
  const own = profile.clusters[j];
  const options = profile.clusters.filter((cluster) => cluster !== own).map((cluster) => h("option", { value: cluster.number }, `${cluster.number} ${cluster.name}`));
  const given = await ask(t("tune.merge.named", { name: own.name }), [h("label", {}, t("tune.merge.with"), h("select", { name: "other" }, ...options)), h("p", { class: "quiet" }, t("tune.merge.how"))], t("tune.merge.do"));
  if (given) await again(run, { merge: [own.number, Number(given.other)] });
}
