// Sharing a run: who may read it, the link to send, and words to send it with.

import { h, t } from "/page/dom.js";
import { ask, call, doing, frame } from "./frame.js";

export async function share(run) {
  const { origin, pathname, hash } = window.location;
  const link = `${origin}${pathname}${hash}`;
  const copied = h("p", { class: "quiet", role: "status" }, "");
  const choice = (value, on) => h("label", {}, h("input", { type: "radio", name: "audience", value, checked: on }), ` ${t(`share.${value}`)}`);
  const field = (name, element) => {
    element.id = `share-${name}`;
    const take = doing(async () => {
      await copy(element);
      copied.textContent = t("share.copied");
    });
    return h("div", { class: "field" }, h("label", { for: element.id }, t(`share.${name}`)), h("div", { class: "copied" }, element, h("button", { type: "button", "aria-label": t(`share.copy.${name}`), click: take }, t("share.copy"))));
  };
  const words = h("textarea", { rows: 3 });
  words.value = t("share.words", { title: run.title, n: run.clusters, link });
  const alone = frame.user === "local" ? h("p", { class: "notice" }, t("share.local")) : null;
  const given = await ask(
    t("share"),
    [
      h("fieldset", { class: "stacked" }, h("legend", {}, t("share.who")), choice("nobody", !run.shared), choice("everyone", run.shared)),
      alone,
      h("p", { class: "quiet" }, t("share.how")),
      field("link", h("input", { type: "text", readonly: true, value: link })),
      field("message", words),
      copied,
    ],
    t("save"),
  );
  if (!given || (given.audience === "everyone") === run.shared) return;
  await call("PATCH", `/api/v1/runs/${run.id}`, { shared: given.audience === "everyone" });
  window.location.reload();
}

// The clipboard is for pages by https alone; elsewhere the old way does.
async function copy(element) {
  element.select();
  if (navigator.clipboard) await navigator.clipboard.writeText(element.value);
  else document.execCommand("copy");
}
