// What every page of the explorer shares: its texts, calls to the server, notices and dialogs.

import { button, find, h, jumpTo, setTexts, t } from "/page/dom.js";
import { SECTIONS } from "/page/sections.js";

export const frame = /** @type {Record<string, string>} */ (find("#frame").dataset);
export const page = find("#page");
const dialog = /** @type {HTMLDialogElement} */ (find("#dialog"));
const noticeBoard = find("#notice");

/** @type {{ texts: Texts, palette: Palette, language: Language }} */
export const assets = { texts: {}, palette: { clusters: [] }, language: "en" };
const PATIENCE = 400; // milliseconds after which a page that isn't there yet says that it comes

// A letter for each place of a page.
const PLACES = {
  ...Object.fromEntries(SECTIONS.filter(({ key }) => key).map(({ key, id }) => [key, id])),
  g: "tree",
  p: "map",
  n: "arrive",
  w: "why",
};

// Load what every page needs, then fill the page; an error is shown on it.
export async function startPage(fill) {
  find("#language").addEventListener("change", changeLanguage);
  const [texts, palette] = await Promise.all([get("/texts.json"), get("/page/palette.json")]);
  Object.assign(assets, { texts, palette, language: document.documentElement.lang });
  setTexts(texts, assets.language);
  for (const [name, colour] of Object.entries(palette)) {
    if (typeof colour === "string") document.body.style.setProperty(`--${name}`, colour);
  }
  find("#skip").addEventListener("click", skip);
  find("#help").addEventListener("click", showKeys);
  document.getElementById("sign-out")?.addEventListener("click", signOut);
  listenToKeys();
  const slow = window.setTimeout(
    () =>
      page.querySelector("main") ??
      page.replaceChildren(h("main", { class: "alone" }, waiting(t("opening")))),
    PATIENCE,
  );
  try {
    await fill();
    window.clearTimeout(slow);
  } catch (error) {
    page.replaceChildren(
      h("main", {}, h("p", { class: "notice wrong", role: "alert" }, error.message)),
    );
  }
}

export function may(role) {
  const roles = ["viewer", "analyst", "exporter"];
  return roles.indexOf(frame.role) >= roles.indexOf(role);
}

export function get(path) {
  return call("GET", path);
}

export function call(method, path, body, signal) {
  return body === undefined
    ? send(method, path)
    : send(method, path, JSON.stringify(body), { "content-type": "application/json" }, signal);
}

// Send a body as it is, such as a file.
export async function send(method, path, body, headers = {}, signal = null) {
  const sent = fetch(path, {
    method,
    headers: { "x-csrf-token": frame.csrf, ...headers },
    body,
    signal,
  });
  const response = await sent.catch(() => {
    throw new Error(t("error.network"));
  });
  if (response.status === 204) return null;
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.error ?? t("error.network"));
  return answer;
}

// Do something for a button: it is disabled meanwhile, and an error is shown.
export function handle(work) {
  return async (event) => {
    const pressed = event.currentTarget;
    pressed.disabled = true;
    try {
      await work(event);
    } catch (error) {
      notify(error.message, true);
    } finally {
      pressed.disabled = false;
    }
  };
}

export function notify(message, wrong = false, ...actions) {
  const close = button("×", () => noticeBoard.replaceChildren(), { "aria-label": t("close") });
  noticeBoard.replaceChildren(
    h("p", { class: wrong ? "notice wrong" : "notice" }, h("span", {}, message), ...actions, close),
  );
}

// Show a dialog and return what its form gives, or null when it is left.
export function ask(title, fields, action) {
  return new Promise((resolve) => {
    const submit = (event) => {
      event.preventDefault();
      resolve(Object.fromEntries(new FormData(event.target)));
      dialog.close();
    };
    const form = h(
      "form",
      { submit },
      h("h2", { id: "dialog-title" }, title),
      ...fields,
      h(
        "p",
        { class: "controls" },
        button(t(action ? "cancel" : "close"), () => dialog.close()),
        action ? h("button", { class: "primary" }, action) : null,
      ),
    );
    dialog.replaceChildren(h("div", { class: "comorb" }, form));
    dialog.setAttribute("aria-labelledby", "dialog-title");
    dialog.addEventListener("close", () => resolve(null), { once: true });
    dialog.showModal();
  });
}

// Something takes its time: a bar that moves, and after a while how long it has taken so far.
export function waiting(text) {
  const spent = h("span", { class: "quiet" });
  const began = Date.now();
  const shown = h(
    "div",
    { class: "waiting" },
    h("p", { role: "status" }, text),
    h("progress", { "aria-label": text }),
    spent,
  );
  const timer = window.setInterval(() => {
    const seconds = Math.round((Date.now() - began) / 1000);
    if (!shown.isConnected && seconds > 2) window.clearInterval(timer);
    else if (seconds > 1) spent.textContent = t("waiting.spent", { n: seconds });
  }, 1000);
  return shown;
}

export function trail(...parts) {
  const items = parts.map(([text, href]) =>
    h("li", {}, href ? h("a", { href }, text) : h("span", { "aria-current": "page" }, text)),
  );
  find("#path").replaceChildren(h("ol", { "aria-label": t("bar.path") }, ...items));
  document.title = `${parts[parts.length - 1]?.[0] ?? ""} · comorb`;
}

// What is built in has a title in every language.
export function titleOf(data) {
  return data.kind === "builtin" ? t(`builtin.${data.id}`) : data.title;
}

export function dateTime(seconds) {
  return new Intl.DateTimeFormat(assets.language, {
    dateStyle: "medium",
    timeStyle: "short",
  }).format(1000 * seconds);
}

function changeLanguage(event) {
  document.cookie = `comorb_lang=${event.target.value}; path=/; max-age=31536000; samesite=strict`;
  window.location.reload();
}

// Past the bar and the tools; the address keeps its choices.
function skip(event) {
  event.preventDefault();
  const main = find("main", page);
  main.setAttribute("tabindex", "-1");
  main.focus();
  main.scrollIntoView({ block: "start" });
}

async function signOut() {
  await call("POST", "/api/v1/logout");
  window.location.assign("/login");
}

function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    const typing = /** @type {Element} */ (event.target).closest?.(
      "input:not([type=range]), textarea, select, dialog",
    );
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "?") showKeys();
    else if (event.key === "h") window.location.assign("/");
    else if (event.key in PLACES) jumpTo(PLACES[event.key]);
    else if (/^[1-9]$/.test(event.key))
      /** @type {HTMLElement | null} */ (
        document.querySelector(`.card[data-number="${event.key}"]`)
      )?.focus();
    else return;
    event.preventDefault();
  });
}

function showKeys() {
  const rows = [
    ["?", t("keys.help")],
    ["h", t("keys.home")],
    ["1 – 9", t("keys.card")],
    ...Object.entries(PLACES).map(([key, id]) => [key, t(`${id}.title`)]),
    ["+ − ↑ ↓ 0", t("keys.heatmap")],
    ["Tab", t("keys.tab")],
    ["Esc", t("keys.escape")],
  ];
  const table = h(
    "dl",
    { class: "terms" },
    ...rows.flatMap(([key, text]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)]),
  );
  ask(t("keys.title"), [table]);
}
