// What the user has chosen, kept in the address after '#': the section first, then settings.

const DEFAULTS = { part: "", lambda: 0.6, sort: "overall", rows: 20 };

export function createState(address = window.location.hash) {
  const chosen = { ...DEFAULTS, ...fromHash(address) };
  const watchers = [];
  return {
    get: (key) => chosen[key],
    set(key, value) {
      chosen[key] = value;
      window.history.replaceState(null, "", toHash(chosen));
      for (const [watched, call] of watchers) if (watched === key) call(value);
    },
    watch: (key, call) => watchers.push([key, call]),
  };
}

function toHash(chosen) {
  const parts = Object.keys(DEFAULTS).filter((key) => chosen[key] !== DEFAULTS[key]);
  return `#${parts.map((key) => (key === "part" ? chosen.part : `${key}=${encodeURIComponent(chosen[key])}`)).join("&")}`;
}

function fromHash(address) {
  const settings = {};
  for (const part of address.replace(/^#/, "").split("&")) {
    const [key, value] = part.split("=").map(decodeURIComponent);
    if (value === undefined) settings.part = key;
    if (key === "sort") settings.sort = value;
    if (key === "lambda" && value >= 0 && value <= 1) settings.lambda = Number(value);
    if (key === "rows" && Number(value) > 0) settings.rows = Number(value);
  }
  return settings;
}
