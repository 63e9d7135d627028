// The whole page from one profile: the report shows it alone, the explorer inside its own frame.

import { again, header, ledger, trust } from "./about.js";
import { cards } from "./cards.js";
import { colourOf } from "./data.js";
import { h, setTexts, t } from "./dom.js";
import { frequency } from "./frequency.js";
import { heatmap } from "./heatmap.js";
import { createHighlight } from "./highlight.js";
import { outcomes } from "./outcomes.js";
import { relevanceTable } from "./relevance.js";
import { createState } from "./state.js";

export function mount(root, profile, { texts, palette, language = "en" }) {
  setTexts(texts, language);
  profile.clusters.forEach((cluster, j) => root.style.setProperty(`--cluster-${j}`, colourOf(palette, cluster)));
  for (const name of ["overall", "ink", "muted", "line", "paper", "hidden"]) {
    root.style.setProperty(`--${name}`, palette[name]);
  }
  const state = createState();
  const highlight = createHighlight(root, profile);
  const parts = [
    cards(profile),
    frequency(profile, state),
    relevanceTable(profile, state),
    heatmap(profile, palette, highlight),
    outcomes(profile),
    trust(profile),
    ledger(profile),
    again(profile),
  ].filter(Boolean);
  const links = parts.map((part) => h("a", { href: `#${part.id}`, click: (event) => jump(event, part) }, t(`${part.id}.short`)));
  root.prepend(header(profile), h("nav", { "aria-label": t("nav") }, ...links), h("main", {}, ...parts));
}

// The address holds the state, so a jump to a section leaves it alone.
function jump(event, part) {
  event.preventDefault();
  part.scrollIntoView({ block: "start" });
  part.querySelector("h2").setAttribute("tabindex", "-1");
  part.querySelector("h2").focus({ preventScroll: true });
}
