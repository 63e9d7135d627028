// The whole page from one profile: the report shows it alone, the explorer inside its own frame.

import { colourOf } from "./data.js";
import { h, jumpTo, present, setTexts, t } from "./dom.js";
import { header } from "./source.js";
import { createHighlight } from "./highlight.js";
import { SECTIONS } from "./sections.js";
import { createState } from "./state.js";

// `tools` is what a server adds: stars that are kept, slices of the records, controls.
/** @param {any} root @param {Profile} profile @param {any} part2 */
export function mount(root, profile, { texts, palette, language = "en", tools = {} }) {
  setTexts(texts, language);
  profile.clusters.forEach((cluster, j) =>
    root.style.setProperty(`--cluster-${j}`, colourOf(palette, cluster)),
  );
  for (const name of ["overall", "ink", "muted", "line", "paper", "hidden"]) {
    root.style.setProperty(`--${name}`, palette[name]);
  }
  const shown = {
    profile,
    palette,
    tools,
    state: createState(),
    highlight: createHighlight(root, profile),
  };
  const parts = present(SECTIONS.map(({ draw }) => draw(shown)));
  const links = parts.map(({ id }) =>
    h("a", { href: `#${id}`, click: (event) => jump(event, id) }, t(`${id}.short`)),
  );
  root.prepend(
    header(profile),
    h("nav", { "aria-label": t("nav") }, ...links),
    h("main", { tabindex: -1 }, ...parts),
  );
  root.addEventListener("arrive", (event) => shown.state.set("part", event.target.id));
  jumpTo(shown.state.get("part"));
  return shown;
}

// The address holds the section and the other choices.
export function jump(event, id) {
  event.preventDefault();
  jumpTo(id);
}
