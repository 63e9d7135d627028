// A run: how far it is, then what was found, with all that can be done about it.

import { button, count, find, h, jumpTo, present, t } from "/page/dom.js";
import { doubt } from "/page/board.js";
import { findings } from "/page/burden.js";
import { stability } from "/page/cards.js";
import { jump, mount } from "/page/page.js";
import { newRecords } from "./new_records.js";
import { assets, call, frame, get, handle, may, notify, page, startPage, trail } from "./frame.js";
import { patientMap } from "./map.js";
import { addressOf, nameCodes } from "./definition.js";
import { chosenSlice, pageTools, sliceNotice, sliceProfile } from "./slices.js";
import { splitTree } from "./tree.js";
import { toolbar } from "./toolbar.js";
import { runControls } from "./edits.js";
import { withView } from "./view.js";
import { explanation } from "./explain.js";

startPage(async () => {
  const run = await get(`/api/v1/runs/${frame.key}`);
  crumbs(run);
  if (run.state === "done") await show(run);
  else follow(run);
});

/** All › Cluster 3 › 3b: the clusters that a run is inside of. @param {Run} run */
function crumbs(run) {
  let label = "";
  const parts = run.path.map((step, i) => {
    if (step.cluster)
      label = label ? label + String.fromCharCode(96 + step.cluster) : String(step.cluster);
    return [
      step.cluster ? t("path.inside", { label }) : t("path.region"),
      withView(`/runs/${run.path[i + 1]?.run ?? run.id}`),
    ];
  });
  const all = run.path.length ? run.path[0].run : run.id;
  const last = parts.pop();
  trail(
    [t("home.title"), "/"],
    ...(last ? [[t("all"), withView(`/runs/${all}`)], ...parts, [last[0]]] : [[run.title]]),
  );
}

/** @param {Run} run */
async function show(run) {
  const slice = chosenSlice(run);
  const profile = slice
    ? await sliceProfile(run, slice)
    : await get(withView(`/api/v1/runs/${run.id}/profile`));
  if (!profile) return show(run);
  const { texts, palette, language } = assets;
  profile.source.title = run.title;
  page.replaceChildren();
  const { state } = mount(page, profile, {
    texts,
    palette,
    language,
    tools: { ...pageTools(run, slice), ...runControls(run, profile) },
  });
  if (slice) find("header", page).after(sliceNotice(slice, profile));
  page.prepend(await toolbar(run, profile));
  const own = present([
    await splitTree(run, profile),
    patientMap(run, profile),
    may("analyst") ? newRecords(run, profile) : null,
    explanation(run, profile),
  ]);
  find("main", page).append(...own);
  find("nav", page).append(
    ...own.map(({ id }) =>
      h("a", { href: `#${id}`, click: (event) => jump(event, id) }, t(`${id}.short`)),
    ),
  );
  jumpTo(state.get("part"));
  await notifyLeftOut(run, profile);
  if (!run.measured) stabilise(run);
}

/** @param {Run} run @param {Profile} profile */
async function notifyLeftOut(run, profile) {
  const last = new URLSearchParams(window.location.search).get("left_out");
  if (!last || !run.parent) return;
  const names = await nameCodes(run, profile, [last]);
  const undo = h(
    "a",
    { class: "button", href: withView(`/runs/${run.parent}${window.location.hash}`) },
    t("undo"),
  );
  notify(t("tune.left_out", { name: names[last] ?? last }), false, undo);
}

// Stability is measured after the clusters are shown; its numbers come in when they are there.
/** @param {Run} run */
function stabilise(run) {
  const events = new EventSource(`/api/v1/runs/${run.id}/events`);
  events.addEventListener("message", async (event) => {
    if (!JSON.parse(event.data).measured) return;
    events.close();
    const found = await get(withView(`/api/v1/runs/${run.id}/profile`)).catch((error) =>
      notify(error.message, true),
    );
    if (found && !chosenSlice(run))
      page.querySelector("#burden .findings")?.replaceWith(findings(found));
    found?.clusters.forEach((cluster, j) => {
      const facts = page.querySelector(`.card[data-cluster="${j}"] .trust`);
      if (!facts || cluster.stability === null || facts.children.length > 1) return;
      facts.append(...present([stability(found, cluster)]));
      page
        .querySelector(`.board tr[data-cluster="${j}"] .named span:last-child`)
        ?.append(doubt(found, cluster) ?? "");
    });
  });
  events.addEventListener("error", () => events.close());
}

/** @param {Run} run */
function follow(run) {
  const bar = h("progress", { max: 1, "aria-label": t("progress.title") });
  const stage = h("p", { role: "status" }, t(`state.${run.state}`));
  const left = h("p", { class: "quiet" });
  const began = Date.now();
  const cancel = button(
    t("cancel"),
    handle(() => call("POST", `/api/v1/runs/${run.id}/cancel`)),
  );
  const again = async () => {
    const { data, k, rules, title, parent, within, merge, split } = run;
    const made = await call("POST", "/api/v1/runs", {
      data,
      k,
      rules,
      title,
      parent,
      within,
      merge,
      split,
    });
    window.location.assign(withView(`/runs/${made.id}`));
  };
  page.replaceChildren(
    h(
      "main",
      { class: "alone" },
      h("h1", {}, run.title),
      bar,
      stage,
      left,
      h("p", { class: "controls" }, cancel),
    ),
  );
  if (!["queued", "running"].includes(run.state)) return ended(run);
  const events = new EventSource(`/api/v1/runs/${run.id}/events`);
  events.addEventListener("message", (event) => {
    const progress = JSON.parse(event.data);
    if (progress.state === "done") {
      events.close();
      window.location.reload();
    } else if (progress.state === "running") {
      bar.value = progress.done ?? 0;
      stage.textContent = t(`progress.${progress.stage ?? "reading"}`, {
        records: progress.records ? count(progress.records) : "",
      });
      if (progress.left)
        left.textContent = t("progress.left", { seconds: count(Math.ceil(progress.left)) });
      else if (left.textContent)
        left.textContent = t("progress.longer", {
          n: count(Math.round((Date.now() - began) / 1000)),
        });
    } else if (progress.state === "queued") {
      stage.textContent = progress.before
        ? t("state.before", { n: count(progress.before) })
        : t("state.queued");
    } else {
      events.close();
      ended(progress);
    }
  });

  function ended(progress) {
    bar.hidden = true;
    left.textContent = "";
    stage.textContent = progress.message ?? t(`state.${progress.state}`);
    cancel.replaceWith(
      button(t("run.again"), handle(again), { class: "primary" }),
      h("a", { class: "button", href: addressOf(run.data, run.rules, run.k) }, t("run.change")),
    );
  }
}
