// What every page of the explorer shares: its texts, calls to the server, notices and dialogs.

import { h, setTexts, t } from "/page/dom.js";
import { listen, showKeys } from "./keys.js";

export const frame = document.getElementById("frame").dataset;
export const page = document.getElementById("page");
const dialog = document.getElementById("dialog");
const noticeBoard = document.getElementById("notice");

export const assets = {};
const PATIENCE = 400; // milliseconds after which a page that isn't there yet says that it comes

// Load what every page needs, then fill the page; what goes wrong is told on it.
export async function begin(fill) {
  document.getElementById("language").addEventListener("change", changeLanguage);
  const [texts, palette] = await Promise.all([get("/texts.json"), get("/page/palette.json")]);
  Object.assign(assets, { texts, palette, language: document.documentElement.lang });
  setTexts(texts, assets.language);
  for (const [name, colour] of Object.entries(palette)) {
    if (typeof colour === "string") document.body.style.setProperty(`--${name}`, colour);
  }
  document.getElementById("skip").addEventListener("click", skip);
  document.getElementById("help").addEventListener("click", showKeys);
  document.getElementById("sign-out")?.addEventListener("click", signOut);
  listen();
  const slow = window.setTimeout(() => page.querySelector("main") ?? page.replaceChildren(h("main", { class: "alone" }, waiting(t("opening")))), PATIENCE);
  try {
    await fill();
    window.clearTimeout(slow);
  } catch (error) {
    page.replaceChildren(h("main", {}, h("p", { class: "notice wrong", role: "alert" }, error.message)));
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
  return body === undefined ? send(method, path) : send(method, path, JSON.stringify(body), { "content-type": "application/json" }, signal);
}

// Send a body as it is, such as a file.
export async function send(method, path, body, headers = {}, signal = null) {
  const sent = fetch(path, { method, headers: { "x-csrf-token": frame.csrf, ...headers }, body, signal });
  const response = await sent.catch(() => {
    throw new Error(t("error.network"));
  });
  if (response.status === 204) return null;
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.error ?? t("error.network"));
  return answer;
}

// Do something for a button: it rests meanwhile, and what goes wrong is told.
export function doing(work) {
  return async (event) => {
    const button = event.currentTarget;
    button.disabled = true;
    try {
      await work(event);
    } catch (error) {
      tell(error.message, true);
    } finally {
      button.disabled = false;
    }
  };
}

export function tell(message, wrong = false, ...actions) {
  const close = h("button", { type: "button", "aria-label": t("close"), click: () => noticeBoard.replaceChildren() }, "×");
  noticeBoard.replaceChildren(h("p", { class: wrong ? "notice wrong" : "notice" }, h("span", {}, message), ...actions, close));
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
        h("button", { type: "button", click: () => dialog.close() }, t(action ? "cancel" : "close")),
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
  const shown = h("div", { class: "waiting" }, h("p", { role: "status" }, text), h("progress", { "aria-label": text }), spent);
  const timer = window.setInterval(() => {
    const seconds = Math.round((Date.now() - began) / 1000);
    if (!shown.isConnected && seconds > 2) window.clearInterval(timer);
    else if (seconds > 1) spent.textContent = t("waiting.spent", { n: seconds });
  }, 1000);
  return shown;
}

export function trail(...parts) {
  const items = parts.map(([text, href]) => h("li", {}, href ? h("a", { href }, text) : h("span", { "aria-current": "page" }, text)));
  document.getElementById("path").replaceChildren(h("ol", { "aria-label": t("bar.path") }, ...items));
  document.title = `${parts[parts.length - 1]?.[0] ?? ""} · comorb`;
}

// What is built in has a title in every language.
export function titleOf(data) {
  return data.kind === "builtin" ? t(`builtin.${data.id}`) : data.title;
}

export function when(seconds) {
  return new Intl.DateTimeFormat(assets.language, { dateStyle: "medium", timeStyle: "short" }).format(1000 * seconds);
}

function changeLanguage(event) {
  document.cookie = `comorb_lang=${event.target.value}; path=/; max-age=31536000; samesite=strict`;
  window.location.reload();
}

// Past the bar and the tools; the address keeps its choices.
function skip(event) {
  event.preventDefault();
  const main = page.querySelector("main");
  main.setAttribute("tabindex", "-1");
  main.focus();
  main.scrollIntoView({ block: "start" });
}

async function signOut() {
  await call("POST", "/api/v1/logout");
  window.location.assign("/login");
}
