// How to do it again.

import { h, section, t } from "./dom.js";

export function again({ profile }) {
  const { source } = profile;
  const facts = [
    source.command ? [t("again.command"), h("code", {}, source.command)] : null,
    [t("again.version"), h("code", {}, `comorb ${source.version}`)],
    source.digest ? [t("again.digest"), h("code", { class: "digest" }, source.digest)] : null,
  ].filter(Boolean);
  return section("again", h("dl", { class: "terms" }, ...facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])));
}
