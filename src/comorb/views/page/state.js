// What the user has chosen, kept in the address after '#': the section first, then settings.

const DEFAULTS = {
  part: "",
  lambda: null, // that of the profile
  sort: "overall",
  rows: 20,
  board: "",
  use: "",
  outcomes: "",
  starred: "",
  split: "",
  mix: "",
  slice: "",
};
const NUMBERS = { lambda: (value) => value >= 0 && value <= 1, rows: (value) => value > 0 };

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
    else if (!Object.hasOwn(DEFAULTS, key)) continue;
    else if (!(key in NUMBERS)) settings[key] = value;
    else if (NUMBERS[key](Number(value))) settings[key] = Number(value);
  }
  return settings;
}
