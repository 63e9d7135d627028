// A run: how far it is, then what was found, with all that can be done about it.

import { count, h, jumpTo, t } from "/page/dom.js";
import { doubt, findings } from "/page/burden.js";
import { stability } from "/page/cards.js";
import { jump, mount } from "/page/page.js";
import { arrivals } from "./arrivals.js";
import { assets, begin, call, doing, frame, get, may, page, tell, trail } from "./frame.js";
import { patientMap } from "./map.js";
import { addressOf, namesOf } from "./rules.js";
import { onlySlice, openSlice, pageTools, sliceProfile } from "./slicing.js";
import { splitTree } from "./tree.js";
import { toolbar } from "./toolbar.js";
import { tuned } from "./tune.js";
import { viewed } from "./view.js";
import { why } from "./why.js";

begin(async () => {
  const run = await get(`/api/v1/runs/${frame.key}`);
  crumbs(run);
  if (run.state === "done") await show(run);
  else follow(run);
});

// All › Cluster 3 › 3b: the clusters that a run is inside of.
function crumbs(run) {
  let label = "";
  const parts = run.path.map((step, i) => {
    if (step.cluster) label = label ? label + String.fromCharCode(96 + step.cluster) : String(step.cluster);
    return [step.cluster ? t("path.inside", { label }) : t("path.region"), viewed(`/runs/${run.path[i + 1]?.run ?? run.id}`)];
  });
  const all = run.path.length ? run.path[0].run : run.id;
  const last = parts.pop();
  trail([t("home.title"), "/"], ...(last ? [[t("all"), viewed(`/runs/${all}`)], ...parts, [last[0]]] : [[run.title]]));
}

async function show(run) {
  const slice = openSlice(run);
  const profile = slice ? await sliceProfile(run, slice) : await get(viewed(`/api/v1/runs/${run.id}/profile`));
  if (!profile) return show(run);
  const { texts, palette, language } = assets;
  profile.source.title = run.title;
  page.replaceChildren();
  const { state } = mount(page, profile, { texts, palette, language, tools: pageTools(run, slice) });
  if (slice) page.querySelector("header").after(onlySlice(slice, profile));
  page.prepend(await toolbar(run, profile));
  const own = [await splitTree(run, profile), patientMap(run, profile), may("analyst") ? arrivals(run, profile) : null, why(run, profile)].filter(Boolean);
  page.querySelector("main").append(...own);
  page.querySelector("nav").append(...own.map(({ id }) => h("a", { href: `#${id}`, click: (event) => jump(event, id) }, t(`${id}.short`))));
  tuned(run, profile);
  jumpTo(state.get("part"));
  await told(run, profile);
  if (!run.measured) stabilise(run);
}

async function told(run, profile) {
  const last = new URLSearchParams(window.location.search).get("left_out");
  if (!last || !run.parent) return;
  const names = await namesOf(run, profile, [last]);
  const undo = h("a", { class: "button", href: viewed(`/runs/${run.parent}${window.location.hash}`) }, t("undo"));
  tell(t("tune.left_out", { name: names[last] ?? last }), false, undo);
}

// Stability is measured after the clusters are shown; its numbers come in when they are there.
function stabilise(run) {
  const events = new EventSource(`/api/v1/runs/${run.id}/events`);
  events.addEventListener("message", async (event) => {
    if (!JSON.parse(event.data).measured) return;
    events.close();
    const found = await get(viewed(`/api/v1/runs/${run.id}/profile`)).catch((error) => tell(error.message, true));
    if (found && !openSlice(run)) page.querySelector("#burden .findings")?.replaceWith(findings(found));
    found?.clusters.forEach((cluster, j) => {
      const facts = page.querySelector(`.card[data-cluster="${j}"] .trust`);
      if (!facts || cluster.stability === null || facts.children.length > 1) return;
      facts.append(stability(cluster));
      page.querySelector(`.board tr[data-cluster="${j}"] .named span:last-child`)?.append(doubt(cluster) ?? "");
    });
  });
  events.addEventListener("error", () => events.close());
}

function follow(run) {
  const bar = h("progress", { max: 1, "aria-label": t("progress.title") });
  const stage = h("p", { role: "status" }, t(`state.${run.state}`));
  const left = h("p", { class: "quiet" });
  const began = Date.now();
  const cancel = h("button", { type: "button", click: doing(() => call("POST", `/api/v1/runs/${run.id}/cancel`)) }, t("cancel"));
  const again = async () => {
    const { data, k, rules, title, parent, within, merge, split } = run;
    const made = await call("POST", "/api/v1/runs", { data, k, rules, title, parent, within, merge, split });
    window.location.assign(viewed(`/runs/${made.id}`));
  };
  page.replaceChildren(h("main", { class: "alone" }, h("h1", {}, run.title), bar, stage, left, h("p", { class: "controls" }, cancel)));
  if (!["queued", "running"].includes(run.state)) return ended(run);
  const events = new EventSource(`/api/v1/runs/${run.id}/events`);
  events.addEventListener("message", (event) => {
    const told = JSON.parse(event.data);
    if (told.state === "done") {
      events.close();
      window.location.reload();
    } else if (told.state === "running") {
      bar.value = told.done ?? 0;
      stage.textContent = t(`progress.${told.stage ?? "reading"}`, { records: told.records ? count(told.records) : "" });
      if (told.left) left.textContent = t("progress.left", { seconds: count(Math.ceil(told.left)) });
      else if (left.textContent) left.textContent = t("progress.longer", { n: count(Math.round((Date.now() - began) / 1000)) });
    } else if (told.state === "queued") {
      stage.textContent = told.before ? t("state.before", { n: count(told.before) }) : t("state.queued");
    } else {
      events.close();
      ended(told);
    }
  });

  function ended(told) {
    bar.hidden = true;
    left.textContent = "";
    stage.textContent = told.message ?? t(`state.${told.state}`);
    cancel.replaceWith(
      h("button", { type: "button", class: "primary", click: doing(again) }, t("run.again")),
      h("a", { class: "button", href: addressOf(run.data, run.rules, run.k) }, t("run.change")),
    );
  }
}
