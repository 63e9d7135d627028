// Saved cohorts and sets of codes: kept under a name, used again elsewhere, shared, sent as a file.

import { button, count, h, t } from "/page/dom.js";
import { ask, call, get, handle, notify } from "./frame.js";

let kept = null;

// What is saved, loaded once a page.
function saved() {
  kept ??= get("/api/v1/definitions").catch(() => []);
  return kept;
}

// The sets of codes whose names hold a text, as choices of a picker.
export async function codeSets(text) {
  const rows = (await saved()).filter(
    (row) => row.codes.length && row.name.toLowerCase().includes(text.toLowerCase()),
  );
  return rows.slice(0, 5).map((row) => ({
    set: row.codes,
    code: `@${row.id}`,
    label: t("saved.set.named", { name: row.name, n: count(row.codes.length) }),
  }));
}

export function keepCodes(codes) {
  return keep(t("saved.keep_codes"), { codes }, codes.join(", "));
}

async function keep(title, what, details = "") {
  const given = await ask(
    title,
    [
      details ? h("p", { class: "quiet" }, details) : null,
      h("label", {}, t("saved.name"), h("input", { name: "name", required: true, maxlength: 200 })),
      h("label", {}, h("input", { type: "checkbox", name: "shared" }), ` ${t("saved.share")}`),
    ].filter(Boolean),
    t("save"),
  );
  if (!given) return;
  try {
    await call("POST", "/api/v1/definitions", {
      name: given.name,
      shared: Boolean(given.shared),
      ...what,
    });
    kept = null;
    notify(t("saved.kept", { name: given.name }));
  } catch (error) {
    notify(error.message, true);
  }
}

// The tools above the form of a cohort: use one that is saved, keep this one, see all.
export function savedCohorts({ rules, use }) {
  const choice = h("select", { "aria-label": t("saved.use"), change: () => pick() });
  const element = h(
    "p",
    { class: "controls saved" },
    choice,
    button(t("saved.keep_cohort"), handle(keepThis)),
    button(
      t("saved.all"),
      handle(() => all(draw)),
    ),
  );

  async function draw() {
    const rows = (await saved()).filter((row) => !row.codes.length);
    choice.replaceChildren(
      h("option", { value: "" }, t("saved.use")),
      ...rows.map((row) => h("option", { value: row.id }, row.name)),
    );
    choice.disabled = !rows.length;
  }

  async function pick() {
    const row = (await saved()).find((one) => one.id === choice.value);
    if (row) use(row.rules);
  }

  async function keepThis() {
    const { code_map: map, ...own } = rules();
    if (map) throw new Error(t("saved.no_map"));
    await keep(t("saved.keep_cohort"), { rules: own });
    await draw();
  }

  draw();
  return element;
}

// All that is saved, with what can be done about it.
async function all(changed) {
  const list = h("ul", { class: "sources" });
  const file = h("input", {
    type: "file",
    id: "saved-file",
    class: "unseen",
    accept: ".json",
    change: () => file.files?.[0] && take(file.files[0]),
  });

  async function draw() {
    kept = null;
    const rows = await saved();
    list.replaceChildren(
      ...(rows.length ? rows.map(line) : [h("li", { class: "quiet" }, t("saved.none"))]),
    );
    await changed();
  }

  async function take(chosen) {
    file.value = "";
    try {
      await call("POST", "/api/v1/definitions", JSON.parse(await chosen.text()));
      await draw();
    } catch (error) {
      problem.textContent = error instanceof SyntaxError ? t("saved.no_file") : error.message;
    }
  }

  const problem = h("p", { class: "wrong-line", role: "alert" });
  const act = (work) =>
    handle(async () => {
      await work();
      await draw();
    });
  const rowButton = (key, row, work, more = {}) =>
    button(t(`saved.${key}`), act(work), {
      "aria-label": t(`saved.${key}.named`, { name: row.name }),
      ...more,
    });
  const line = (row) =>
    h(
      "li",
      {},
      h(
        "span",
        { class: "saved-name" },
        h("strong", {}, row.name),
        h(
          "span",
          { class: "quiet" },
          row.codes.length
            ? ` ${t("saved.set.of", { n: count(row.codes.length) })}`
            : ` ${t("saved.cohort")}`,
        ),
      ),
      row.mine ? null : h("span", { class: "tag" }, row.owner),
      h(
        "a",
        {
          class: "button",
          href: `/api/v1/definitions/${row.id}/file`,
          download: "",
          "aria-label": t("saved.export.named", { name: row.name }),
        },
        t("saved.export"),
      ),
      row.mine
        ? rowButton(
            "share",
            row,
            () => call("PATCH", `/api/v1/definitions/${row.id}`, { shared: !row.shared }),
            { "aria-pressed": String(row.shared) },
          )
        : null,
      row.mine
        ? rowButton("delete", row, () => call("DELETE", `/api/v1/definitions/${row.id}`))
        : null,
    );
  await draw();
  await ask(t("saved.all"), [
    h("p", { class: "quiet" }, t("saved.how")),
    list,
    problem,
    h("p", {}, file, h("label", { for: "saved-file", class: "button inline" }, t("saved.import"))),
  ]);
}
