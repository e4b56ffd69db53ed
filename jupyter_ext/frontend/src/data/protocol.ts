// What a DataSource asks and gets. The Python side is pyfunc_debug/report/answers.py; names there and here are the same.

export type Severity = "error" | "warning" | "note";
export type CallKind = "forward" | "gradient";
export type Status = "ok" | "error" | "running" | "interrupted";

export interface Overview {
  name: string;
  state: string;
  /** What is said of a call without an end. Absent in files of older versions. */
  unfinished?: string;
  revision: number;
  start_ns: number;
  end_ns: number;
  wall_ns: number | null;
  calls: number;
  dropped: number;
  errors: number;
  running: number;
  runs: number;
  nodes: number;
  functions: number;
  findings: number | null;
  gil: string | null;
  /** GIL waits below it are told as "< 50 µs": the grade cannot tell them from noise. */
  resolution_ns: number;
  /** Whether held and released are known for any call. */
  split: boolean;
  cost: number | null;
  options: Record<string, unknown>;
  versions: Record<string, unknown>;
  pid: number | null;
  /** What the recording tells of its program, in words. */
  holds?: string;
  threads: ThreadFacts[];
  /** The call to look at first: the first that failed, else gave NaN, else the slowest; null without calls. */
  first: number | null;
  names: Record<string, string>;
  groups: Record<string, number>;
  /** Calls that were held at breakpoints. */
  stops?: StopSpan[];
  /** What the axis of time leaves out, in real ns: nothing but stopped calls was there. */
  folds?: [start: number, end: number][];
}

export interface StopSpan {
  call: number;
  thread: number | null;
  start_ns: number;
  /** null while it is held. */
  end_ns: number | null;
  /** Whether it waited behind another stop. */
  queued: boolean;
  why: string;
}

export interface ThreadFacts {
  id: number;
  name: string;
  /** Which of TensorFlow's pools it belongs to, or what several of Python's threads without a name run; else null. */
  pool: string | null;
  /** Whether Python made it. Absent in files of older versions. */
  python?: boolean;
  /** From the beginning of what it did first to the end of what it did last; null without, or while it goes on. */
  first_ns: number | null;
  last_ns: number | null;
}

export interface Parts {
  wait_ns: number;
  held_ns: number | null;
  released_ns: number | null;
  /** Waiting for the GIL inside the body. */
  inside_ns: number | null;
  body_ns: number;
}

export interface LedgerRow {
  key: string;
  parent: string | null;
  level: number;
  type: "function" | "node";
  name: string;
  title: string;
  kind: string;
  function: number | null;
  nodes: number[];
  call_kind: CallKind | null;
  traced: number | null;
  runs: number | null;
  calls: number | null;
  errors: number | null;
  /** Of finished calls, waits included; of runs. Missing where nothing is known of it. */
  total_ns?: number | null;
  mean_ns: number | null;
  p95_ns: number | null;
  share: number | null;
  parts: Parts | null;
  file: string | null;
  line: number | null;
  place: string;
  site?: string | null;
  origin: string;
  severity: Severity | null;
  why: string[];
}

export interface Ledger {
  rows: LedgerRow[];
  /** Path and what to call it. */
  files: [string, string][];
}

export interface Trace {
  id: number;
  function: number;
  ordinal: number;
  name: string;
  thread: number;
  start_ns: number;
  duration_ns: number;
  reason: string[];
  signature: string;
  error: string | null;
  parent: number | null;
}

export interface Viewport {
  start_ns: number;
  end_ns: number;
  calls: number;
  measured: boolean;
  traces: Trace[];
  runs_merged: boolean;
  mode: "calls" | "bins";
  threads?: number[];
  width?: number;
  marks_hidden?: number;
}

export interface CallRow {
  id: number;
  node: number;
  kind: CallKind;
  thread: number;
  start_ns: number;
  /** Without time at stops. */
  duration_ns: number | null;
  wait_ns: number | null;
  held_ns: number | null;
  released_ns: number | null;
  /** At a stop now. */
  held_here?: boolean;
  status: Status;
  failure: string | null;
  /** `NaN` or `Inf`, where an output has one. */
  odd?: string | null;
}

export interface CallsPage {
  total: number;
  offset: number;
  index: number | null;
  rows: CallRow[];
  /** With a condition: whether calls are left that it was not held against yet, and what could not be judged. */
  more?: boolean;
  remark?: string;
}

export interface CallsQuery {
  nodes: number[] | null;
  kind: CallKind | null;
  status?: Status | null;
  sort: string;
  descending: boolean;
  offset: number;
  limit: number;
  find?: number | null;
  /** Only calls for which it holds; answered where there is a kernel. */
  condition?: string;
}

export interface FrameLine {
  file: string;
  line: number;
  place: string;
  function: string;
  text: string;
}

export interface Picture {
  width: number;
  height: number;
  kind: "rgb" | "gray" | "diverging";
  low: number;
  high: number;
  data: string;
}

export interface Delta {
  kind: "equal" | "same-summary" | "max" | "mean" | "type" | "differs";
  value?: number;
  text?: string;
}

export interface Value {
  role: "in" | "out" | "grad in" | "grad out";
  position: number;
  path: string;
  dtype: string;
  shape: number[] | null;
  nbytes: number | null;
  min: number | null;
  max: number | null;
  mean: number | null;
  std: number | null;
  nan: number | null;
  inf: number | null;
  zeros: number | null;
  sampled: number | null;
  histogram: number[];
  text: string;
  note: string;
  kept: string;
  delta: Delta | null;
  picture: Picture | null;
  /** In a report: the first images of a batch. */
  frames?: Picture[];
  table: string[] | null;
}

/** A scalar over the calls of its node, evenly spaced ones of them. */
export interface Trend {
  ids: number[];
  values: number[];
}

/** One value, as large as somebody wants to see it. */
export interface Looked {
  path: string;
  dtype: string;
  shape: number[] | null;
  text: string;
  kept: string;
  picture: Picture | null;
  /** Of a batch: its first images, of `count`. */
  frames: Picture[];
  count: number;
  table: string[] | null;
}

/** Two calls, value by value. */
export interface Compared {
  left: number;
  right: number;
  rows: {
    role: string;
    path: string;
    texts: (string | null)[];
    pictures: (Picture | null)[];
    /** null: not known. */
    equal: boolean | null;
    largest: number | null;
    difference: Picture | null;
  }[];
}

/** What became of a body that ran again. */
/** A call as a pytest file. */
export interface Tested {
  text: string;
  name: string;
  notes: string[];
  /** Where it was written, with the file of its arrays; large arrays are written at once. */
  saved: string | null;
  arrays?: string | null;
}

export interface Replayed {
  running: boolean;
  error?: string;
  /** null: not known, because it was edited or not kept. */
  same?: boolean | null;
  edited?: string[];
  rows?: { path: string; texts: (string | null)[]; pictures: (Picture | null)[]; largest: number | null }[];
}

export interface GilOfCall {
  grade: string;
  /** Of its grade. Absent in reports of older versions. */
  resolution_ns?: number;
  wait_ns: number | null;
  held_ns: number | null;
  released_ns: number | null;
  reacquire_ns: number | null;
  blame: [string, number][];
}

export interface CallDetail {
  id: number;
  node: number;
  group: number;
  name: string;
  kind: CallKind;
  node_kind: string | null;
  thread: number;
  thread_name: string;
  status: Status;
  start_ns: number;
  end_ns: number | null;
  duration_ns: number | null;
  stopped_ns?: number;
  held_here?: boolean;
  cpu_ns: number | null;
  forward: number | null;
  /** The call whose tape TensorFlow really used, where that is another one. */
  tape: number | null;
  gradients: number[];
  previous: number | null;
  next: number | null;
  run: { id: number; kind: string; name: string; trace: number | null } | null;
  runs: number[];
  gil: GilOfCall | null;
  values: Value[];
  failure: { type: string; message: string; traceback: string; frames: FrameLine[] } | null;
  trace_stack: FrameLine[];
  body: { file: string | null; line: number | null; place: string; function: string } | null;
  function: number | null;
  notices: { rule: string; facts: unknown }[];
  /** By role and position: `in:0`. */
  trends?: Record<string, Trend>;
  /** Only in a report that had no room for this call's values. */
  trimmed?: string;
}

/** Kind (k keyword, s string, n number, c comment, m decorator, or empty) and text. */
export type Piece = [kind: string, text: string];

export interface SourceMark {
  kind: "body" | "function" | "site" | "finding";
  line: number;
  end: number;
  key?: string;
  name: string;
  count?: number | null;
  runs?: number | null;
  gradients?: number | null;
  mean_ns?: number | null;
  total_ns?: number | null;
  severity?: Severity;
  message?: string;
}

export interface SourcePage {
  file: string;
  name: string;
  first: number;
  total: number;
  lines: Piece[][];
  marks: SourceMark[];
  /** Whether lines were counted (`lines=True`). */
  counted: boolean;
  counts: SourceCount[];
}

/** How often Python ran a line: `3x`, `1,000+x`, empty for not at all, `-` where only the graph runs it, uncounted. */
export interface SourceCount {
  line: number;
  traced: string;
  ran: string;
  words: string[];
  /** The call that printed, or null for at trace, and the text. */
  prints: [number | null, string][];
  more_prints: number;
}

export interface Finding {
  rule: string;
  severity: Severity;
  node: number | null;
  group: number | null;
  name: string | null;
  calls: number[];
  count: number;
  message: string;
  fix: string;
  /** The fix in colours, if it is code. */
  code: Piece[][];
  file: string | null;
  line: number | null;
  place: string;
  /** What was seen, a line each. */
  evidence: string[];
  /** measured: the recording shows it; proven: tried; likely. */
  confidence: "measured" | "proven" | "likely";
  /** Its section in the manual. */
  page: string;
  /** Of one about values: what its first call was given. */
  inputs: Pick<Value, "path" | "text" | "min" | "max" | "histogram" | "picture">[];
}

/** Why a function was traced as often as it was. */
export interface TracesPage {
  function: number;
  name: string;
  kind: string;
  place: string;
  hidden: number;
  rows: {
    id: number;
    ordinal: number;
    name: string | null;
    signature: string;
    said: ["reason" | "first" | "failed" | "closest" | "avoid" | "stale", string][];
    object: number | null;
    start_ns: number;
    duration_ns: number;
    runs: number | null;
    error: string | null;
    nodes: { key: string; name: string; calls: number }[];
    more_nodes: number;
  }[];
}

export interface GilNode {
  key: string;
  name: string;
  grade: string;
  /** The answer in words, with code between backticks. */
  sentence: string;
  calls: number;
  measured: number;
  wait_ns: number | null;
  worst_ns: number | null;
  /** Numbers below it are told as "< 50 µs". */
  resolution_ns: number;
  held_share: number | null;
  /** If that share is estimated: from how many samples. */
  held_samples: number | null;
}

/** Whom the calls of a ledger row waited for, in ns by body. */
export interface GilRow {
  key: string;
  name: string;
  blame: Record<string, number>;
}

export interface GilWorst {
  call: number;
  node: number;
  name: string;
  gradient: boolean;
  thread: string;
  grade: string;
  resolution_ns: number;
  wait_ns: number;
  reacquire_ns: number | null;
  blame: [string, number][];
}

export interface GilStage {
  key: string;
  name: string;
  function: string;
  at_once: number;
  python_share: number;
  wait_share: number | null;
  pool_share: number | null;
  pool: number;
  ceilings: { calls: number; speedup: number; why: string }[];
  /** The present setting in words, and its number: -1 AUTOTUNE, null not known. */
  present?: string;
  now?: number | null;
  /** Threads that held the GIL meanwhile, and how much faster without each, at most. */
  without?: [string, number][];
  cures?: string[];
}

export interface GilPage {
  grade: string | null;
  grades?: { name: string; words: string }[];
  why: string | null;
  measured?: number;
  calls?: number;
  nodes: GilNode[];
  matrix: GilRow[];
  holders: string[];
  /** Of how many calls, the newest, the blame is; null of all. */
  blame_of: number | null;
  worst: GilWorst[];
  stages: GilStage[];
  process: string[];
  /** Loops over a Dataset: whether they wait for their input. */
  loops?: { sentence: string; place: string }[];
  series: { start_ns: number; end_ns: number; waiting: number[] | null; held: number[] | null; traces?: number[] | null; elsewhere?: number[] | null } | null;
}

export interface Questions {
  overview: { params: { width?: number }; result: Overview };
  ledger: { params: Record<string, never>; result: Ledger };
  timeline: { params: { start_ns: number; end_ns: number; width: number }; result: Viewport };
  calls: { params: CallsQuery; result: CallsPage };
  call: { params: { id: number }; result: CallDetail | null };
  value: { params: { call: number; side: string; position: number }; result: Looked | null };
  compare: { params: { left: number; right: number }; result: Compared | null };
  source: { params: { file: string }; result: SourcePage | null };
  findings: { params: Record<string, never>; result: { findings: Finding[] | null } };
  gil: { params: Record<string, never>; result: GilPage };
  traces: { params: { function: number }; result: TracesPage | null };
}
export type Method = keyof Questions;

export type TypedArray = Float64Array | Float32Array | Int32Array | Uint8Array;
export type Arrays = Record<string, TypedArray>;
export interface Answer<M extends Method> {
  result: Questions[M]["result"];
  arrays: Arrays;
}

/** Layout of one array in the buffers of a message: its type, which buffer, its offset there in bytes, its length. */
export type ArrayPlace = [dtype: string, buffer: number, offset: number, length: number];

/** The bytes of base64 text; `Uint8Array.from(text, …)` takes a second for 10 MB. */
export function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

export function decodeArrays(places: Record<string, ArrayPlace>, buffers: readonly ArrayBufferView[]): Arrays {
  const arrays: Arrays = {};
  for (const [name, [dtype, index, offset, length]] of Object.entries(places)) {
    const view = buffers[index];
    if (!view) throw new Error(`buffer ${index} of the answer is missing`);
    const size = dtype === "float64" ? 8 : dtype === "uint8" ? 1 : 4;
    // The buffer of a message need not be aligned: copy.
    const start = view.byteOffset + offset;
    const bytes = view.buffer.slice(start, start + size * length);
    arrays[name] =
      dtype === "float64"
        ? new Float64Array(bytes)
        : dtype === "float32"
          ? new Float32Array(bytes)
          : dtype === "int32"
            ? new Int32Array(bytes)
            : new Uint8Array(bytes);
  }
  return arrays;
}
