// The shapes that the modules of the pages share, for the type checker alone: nothing here is
// shipped. A number that is suppressed in a protected profile is null.

type Figure = number | null;
type Row = Figure[];
type Language = string;
type Texts = Record<Language, Record<string, string>>;
type Leaf = Node | string | null | undefined;
type Child = Leaf | Leaf[];

interface Palette {
  clusters: string[];
  [name: string]: any;
}

interface Cluster {
  number: number;
  name: string;
  size: Figure;
  share: Figure;
  soft_share: Figure;
  effective: Figure;
  top: Figure;
  margin: Figure;
  entropy: Figure;
  stability: Figure;
  length: Figure;
  of_length: Figure;
  note: string;
  owner: string;
  pathway: string;
}

interface Line {
  unit: string;
  rule: string;
  before: number;
  after: number;
}

interface Source {
  title: string;
  records: number;
  features: number;
  weight: Figure;
  effective: number;
  system: string;
  system_title?: string;
  level: string;
  lines: Line[];
  notes: string[];
  reason: string;
  command: string;
  version: string;
  digest: string;
}

interface Outcome {
  name: string;
  kind: "number" | "share";
  values: string[];
  known: Row;
  counts: Row[];
  estimate: Row[];
  low: Row[];
  high: Row[];
  corrected: { estimate: Row[]; low: Row[]; high: Row[] } | null;
}

interface Feature {
  name: string;
  kind: string;
  columns: number[];
  edges: number[];
  influence: number;
  summary: Outcome;
}

interface Burden {
  records: Row;
  share: Row;
  patients: Row;
  columns: string[];
  totals: Row[];
  means?: Row[];
  shares: Row[];
  rates: string[];
  rate_known: Row[];
  rate_counts: Row[];
  rate: Row[];
  low: Row[];
  high: Row[];
  notes: string[];
}

interface Slices {
  by: string;
  labels: string[];
  ordered: boolean;
  counts: Row[];
  share: Row[];
  low: Row[];
  high: Row[];
  z: Row;
  p: Row;
  mix: string[];
  standardised: Row[];
  half?: Row[];
  notes: string[];
}

interface RuleList {
  conditions: { code: number; has: boolean; member: boolean }[];
  otherwise: boolean;
  precision: Figure;
  recall: Figure;
}

interface Heatmap {
  columns: number[];
  lines: number[];
  per_line: number;
  bits: string;
}

// What the page shows of a profile beyond its fields; codes are places in `codes`.
interface PageFigures {
  n_codes: number;
  universal: number[];
  common: number[];
  relevant: number[][];
  overall: [low: Row, high: Row];
  unit: "patients" | "visits" | "records";
  main_uses: string[];
  lambda: number;
  tiny: number;
  reliable: number;
  by_length: number;
  sure: number;
}

interface Profile {
  source: Source;
  min_cell: number;
  codes: string[];
  names: string[];
  labels: string[];
  clusters: Cluster[];
  counts: Row[];
  prevalence: Row[];
  totals: Row;
  overall: Row;
  low: Row[];
  high: Row[];
  means: Row[];
  expected: Row;
  outcomes: Outcome[];
  heatmap: Heatmap;
  caveats: {
    length: Figure;
    explained_by_length: Figure;
    pairs: { first: number; second: number; observed: number; expected: number }[];
  };
  features?: Feature[];
  burden: Burden | null;
  slices: Slices[];
  rules: RuleList[];
  grey: { members: Row; doubtful: Row; between: Row[] } | null;
  page: PageFigures;
  findings: { text: string; about: string; clusters: number[] }[];
}

interface Settings {
  part: string;
  lambda: number | null;
  sort: string;
  rows: number;
  board: string;
  use: string;
  outcomes: string;
  starred: string;
  split: string;
  mix: string;
  slice: string;
}

interface State {
  get<K extends keyof Settings>(key: K): Settings[K];
  set<K extends keyof Settings>(key: K, value: Settings[K]): void;
  watch(key: keyof Settings, call: (value: any) => void): void;
}

interface Highlighter {
  light(cluster: number | null, code: number | null): void;
  showTip(code: number | null, x?: number, y?: number): void;
  clear(): void;
  watch(call: (lit: { cluster: number | null; code: number | null }) => void): void;
}

// What a server adds to the page: stars that are kept, slices of the records, and the controls of a
// code and of a cluster.
interface Tools {
  splits?: string[];
  split?: (by: string) => Promise<Slices>;
  only?: (by: string, label: string | null) => void;
  slice?: { by: string; label: string } | null;
  starred?: string[];
  codeControl?: (code: number) => HTMLElement | null;
  clusterControls?: (cluster: number) => HTMLElement | null;
  star?: ((names: string[]) => Promise<string[]>) | null;
}

interface Shown {
  profile: Profile;
  palette: Palette;
  state: State;
  highlight: Highlighter;
  tools: Tools;
}

// A run, as the server lists it.
interface Run {
  id: string;
  data: string;
  title: string;
  state: string;
  owner: string;
  mine: boolean;
  shared: boolean;
  measured: boolean;
  created: number;
  records: Figure;
  clusters: number;
  k: number | "auto" | "main" | "finest";
  rules: Record<string, any>;
  parent?: string;
  within?: { run: string; cluster?: number; region?: number[][] } | null;
  merge?: number[] | null;
  split?: number[] | null;
  moved?: Figure;
  groups?: unknown;
  starred?: string[];
  splits?: string[];
  path: { run: string; cluster?: number }[];
  downloads: { aggregates: string[]; patients: string[] };
}
