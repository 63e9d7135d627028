// Tuning: name, look inside, merge, leave out. Each but a name makes a new run; none is changed.

import { button, h, t } from "/page/dom.js";
import { columnName } from "/page/outcomes.js";
import { ask, call, handle, may } from "./frame.js";
import { withView } from "./view.js";

// A run like another, with something changed; the view's settings go along in the address.
/** @param {Run} run */
export async function rerun(run, change, query = "") {
  const { data, rules, title, within } = run;
  const k = typeof run.k === "string" ? run.k : run.clusters;
  const made = await call("POST", "/api/v1/runs", {
    data,
    k,
    rules,
    title,
    within,
    parent: run.id,
    ...change,
  });
  window.location.assign(withView(`/runs/${made.id}${query}${window.location.hash}`));
}

// The controls next to a code and below a cluster, for those who may change the run.
/** @param {Run} run @param {Profile} profile */
export function runControls(run, profile) {
  if (!may("analyst")) return {};
  const codeControl = (i) => {
    const left = leaving(run, profile, i);
    return left ? leaveOut(run, left) : null;
  };
  return { codeControl, clusterControls: (j) => actions(run, profile, j) };
}

// What leaves a code out, or the feature that a sign is of, unless the table itself has it as an item.
/** @param {Run} run @param {Profile} profile */
function leaving(run, profile, i) {
  if (i < profile.page.n_codes)
    return {
      name: profile.labels[i],
      what: profile.codes[i],
      rules: { drop_codes: [...(run.rules.drop_codes ?? []), profile.codes[i]] },
    };
  const name = profile.features?.find((one) => one.columns.includes(i))?.name ?? "";
  const before = run.rules.features ?? [];
  const features = before.filter((word) => columnName(word.split("=")[0]) !== columnName(name));
  return features.length < before.length
    ? { name: columnName(name), what: name, rules: { features } }
    : null;
}

/** @param {Run} run @param {any} part1 */
function leaveOut(run, { name, what, rules }) {
  const label = t("tune.leave_out", { name });
  const go = () =>
    rerun(run, { rules: { ...run.rules, ...rules } }, `?left_out=${encodeURIComponent(what)}`);
  return button("×", handle(go), { class: "leave-out", title: label, "aria-label": label });
}

/** @param {Run} run @param {Profile} profile */
function actions(run, profile, j) {
  const { name, number } = profile.clusters[j];
  const editButton = (key, work) =>
    button(t(`tune.${key}`), handle(work), { "aria-label": t(`tune.${key}.named`, { name }) });
  return h(
    "div",
    { class: "actions" },
    run.mine ? editButton("name", () => rename(run, number, name)) : null,
    run.mine ? editButton("note", () => note(run, profile.clusters[j])) : null,
    editButton("inside", () =>
      runInside(run, { cluster: number }, t("tune.inside.named", { name }), name, 3),
    ),
    run.groups || run.moved ? null : editButton("split", () => split(run, number, name)),
    profile.clusters.length > 1 ? editButton("merge", () => merge(run, profile, j)) : null,
  );
}

/** @param {Run} run */
async function rename(run, number, name) {
  const given = await ask(
    t("tune.name"),
    [
      h(
        "label",
        {},
        t("tune.name.how"),
        h("input", { name: "name", value: name, required: true, maxlength: 200 }),
      ),
    ],
    t("save"),
  );
  if (!given) return;
  await call("PUT", `/api/v1/runs/${run.id}/names`, { [number]: given.name });
  window.location.reload();
}

/** Who looks after the patients of a cluster, and how. @param {Run} run @param {any} part1 */
async function note(run, { number, name, ...own }) {
  const line = (key) =>
    h(
      "label",
      {},
      t(`note.${key}`),
      h("input", { name: key, value: own[key] ?? "", maxlength: 200 }),
    );
  const text = h("textarea", { name: "note", rows: 4, maxlength: 2000 }, own.note ?? "");
  const given = await ask(
    t("tune.note.named", { name }),
    [
      h("p", { class: "quiet" }, t("note.how")),
      line("pathway"),
      line("owner"),
      h("label", {}, t("note.note"), text),
    ],
    t("save"),
  );
  if (!given) return;
  await call("PUT", `/api/v1/runs/${run.id}/notes`, { [number]: given });
  window.location.reload();
}

/**
 * A run on a part of another, with as many clusters as are chosen.
 * @param {Run} run
 * @param {number | string} usual
 */
export async function runInside(run, part, heading, title, usual = "auto") {
  const numbers = ["auto", 2, 3, 4, 5, 6, 8, 10].map((k) =>
    h("option", { value: k, selected: k === usual }, k === "auto" ? t("cohort.auto") : String(k)),
  );
  const choice = h("label", {}, `${t("cohort.k")} `, h("select", { name: "k" }, ...numbers));
  const given = await ask(heading, [choice], t("cohort.run"));
  const k = given?.k === "auto" ? "auto" : Number(given?.k);
  if (given) await rerun(run, { k, within: { run: run.id, ...part }, title });
}

/** Finer groups of one cluster; the others stay as they are. @param {Run} run */
async function split(run, number, name) {
  const numbers = [2, 3, 4, 5, 6].map((k) => h("option", { value: k }, String(k)));
  const given = await ask(
    t("tune.split.named", { name }),
    [
      h("label", {}, `${t("tune.split.into")} `, h("select", { name: "k" }, ...numbers)),
      h("p", { class: "quiet" }, t("tune.split.how")),
    ],
    t("tune.split"),
  );
  if (given) await rerun(run, { split: [number, Number(given.k)] });
}

/** @param {Run} run @param {Profile} profile */
async function merge(run, profile, j) {
  const own = profile.clusters[j];
  const options = profile.clusters
    .filter((cluster) => cluster !== own)
    .map((cluster) => h("option", { value: cluster.number }, `${cluster.number} ${cluster.name}`));
  const given = await ask(
    t("tune.merge.named", { name: own.name }),
    [
      h("label", {}, t("tune.merge.with"), h("select", { name: "other" }, ...options)),
      h("p", { class: "quiet" }, t("tune.merge.how")),
    ],
    t("tune.merge.do"),
  );
  if (given) await rerun(run, { merge: [own.number, Number(given.other)] });
}
