// What the server adds to the page of a run: stars that are kept, slices of its records, one slice alone.

import { button, count, h, t } from "/page/dom.js";
import { sliceName } from "/page/slices.js";
import { createState } from "/page/state.js";
import { call, get, may, notify, page } from "./frame.js";
import { withView } from "./view.js";

/** @param {Run} run */
export function pageTools(run, slice) {
  const kept = new Map();
  const split = (by) => {
    const address = withView(`/api/v1/runs/${run.id}/slices?by=${encodeURIComponent(by)}`);
    if (!kept.has(by))
      kept.set(
        by,
        get(address).catch((error) => (kept.delete(by), Promise.reject(error))),
      );
    return kept.get(by);
  };
  const star = async (names) => {
    try {
      return (await call("PATCH", `/api/v1/runs/${run.id}`, { starred: names })).starred;
    } catch (error) {
      notify(error.message, true);
      return run.starred ?? [];
    }
  };
  const only = (by, label) =>
    reloadWith(label === null ? "" : `${encodeURIComponent(by)}:${label}`);
  const able = run.splits?.length ? { splits: run.splits, split, only, slice } : {};
  return { ...able, starred: run.starred, star: run.mine && may("analyst") ? star : null };
}

/** The slice that the address asks for, or null. @param {Run} run */
export function chosenSlice(run) {
  const [by, ...label] = createState().get("slice").split(":");
  const name = decodeURIComponent(by);
  return run.splits?.includes(name) ? { by: name, label: label.join(":") } : null;
}

// The profile of one slice, with a sign of progress meanwhile; null where there is no such slice.
/** @param {Run} run @param {any} part1 */
export async function sliceProfile(run, { by, label }) {
  const wait = h(
    "p",
    { class: "notice", role: "status" },
    h("progress", { "aria-label": t("slices.wait") }),
    ` ${t("slice.wait", { what: sliceName(by), label })}`,
  );
  const head = page.querySelector("header");
  if (head) head.after(wait);
  else page.replaceChildren(h("main", { class: "alone" }, h("h1", {}, run.title), wait));
  wait.scrollIntoView({ block: "center" });
  try {
    return await get(
      withView(
        `/api/v1/runs/${run.id}/slices/profile?by=${encodeURIComponent(by)}&label=${encodeURIComponent(label)}`,
      ),
    );
  } catch (error) {
    notify(error.message, true);
    createState().set("slice", "");
    return null;
  }
}

// Says that the page is of one slice alone, and leads back to all records.
/** @param {any} part0 @param {Profile} profile */
export function sliceNotice({ by, label }, profile) {
  return h(
    "p",
    { class: "notice only", role: "status" },
    h("strong", {}, `${sliceName(by)}: ${label}. `),
    `${t("slice.only", { n: count(profile.source.records) })} `,
    button(t("slice.all"), () => reloadWith("")),
  );
}

// The page of another slice, or of all records.
function reloadWith(slice) {
  createState().set("slice", slice);
  window.location.reload();
}
