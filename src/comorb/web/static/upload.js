// Sending a file of records: a field for it, a bar, and what became of it.

import { count, h, t } from "/page/dom.js";
import { frame, notify } from "./frame.js";

export function uploadField(done) {
  const input = h("input", {
    type: "file",
    id: "file",
    class: "unseen",
    change: () => send(input.files?.[0]),
  });
  const bar = h("progress", { max: 1, value: 0, hidden: true, "aria-label": t("open.progress") });
  const state = h(
    "p",
    { class: "quiet", role: "status" },
    t("open.limit", { mb: count(Math.round(Number(frame.limit) / 1e6)) }),
  );

  function send(file) {
    if (!file) return;
    input.value = "";
    if (file.size > Number(frame.limit)) {
      fail(t("open.too_large", { mb: count(Math.round(Number(frame.limit) / 1e6)) }));
      return;
    }
    bar.hidden = false;
    const request = new XMLHttpRequest();
    request.open("PUT", `/api/v1/data?name=${encodeURIComponent(file.name)}`);
    request.setRequestHeader("x-csrf-token", frame.csrf);
    request.upload.addEventListener("progress", (event) => {
      bar.value = event.loaded / event.total;
      state.textContent = t("open.sending", {
        done: Math.round(event.loaded / 1e6),
        all: Math.round(event.total / 1e6),
      });
    });
    request.upload.addEventListener("load", () => {
      bar.removeAttribute("value");
      state.textContent = t("open.reading");
    });
    request.addEventListener("load", () => {
      const answer = parsed(request.responseText);
      if (request.status !== 201) return fail(answer.error ?? t("error.network"));
      bar.hidden = true;
      state.textContent = "";
      return done(answer);
    });
    request.addEventListener("error", () => fail(t("error.network")));
    request.send(file);
  }

  function fail(message) {
    bar.hidden = true;
    state.textContent = "";
    notify(message, true);
  }

  return { input, bar, state, send };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
