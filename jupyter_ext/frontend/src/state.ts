// What the panel's parts share: the selection, the open tab, the stretch of time in view.
import type { Ledger, LedgerRow, Overview } from "./data/protocol";
import { NO_FOLDS, type Folds } from "./timeline/folds";
import { noLanes } from "./timeline/lanes";

export type Tab = "call" | "source" | "traces" | "gil" | "stop" | "findings";

export interface Selection {
  /** Row of the ledger. */
  key: string | null;
  call: number | null;
}

export interface View {
  start: number;
  end: number;
}

type Topic = "overview" | "ledger" | "selection" | "tab" | "view" | "lanes" | "link" | "theme";

export class State {
  overview: Overview | null = null;
  waiting: ArrayLike<number> = [];
  errors: ArrayLike<number> = [];
  ledger: Ledger = { rows: [], files: [] };
  selection: Selection = { key: null, call: null };
  tab: Tab = "call";
  view: View = { start: 0, end: 1e9 };
  /** Lanes of the timeline, which name the threads. */
  lanes = noLanes();
  /** Whether the person has zoomed or panned: until then the whole recording is in view. */
  viewTouched = false;
  held = false;
  /** `augment #12`: the call of this recording that is stopped now, or empty. */
  stopped = "";
  /** Why the last question for the header failed, or empty. */
  trouble = "";
  private readonly listeners = new Map<Topic, Set<() => void>>();

  on(topics: Topic | Topic[], callback: () => void, signal: AbortSignal): void {
    for (const topic of [topics].flat()) {
      const set = this.listeners.get(topic) ?? new Set();
      this.listeners.set(topic, set);
      set.add(callback);
      signal.addEventListener("abort", () => set.delete(callback));
    }
  }

  emit(topic: Topic): void {
    for (const callback of [...(this.listeners.get(topic) ?? [])]) callback();
  }

  row(key: string | null = this.selection.key): LedgerRow | undefined {
    return key === null ? undefined : this.ledger.rows.find((row) => row.key === key);
  }

  /** How a call stands that has no end: a dead program holds none. */
  unended(held: boolean): string {
    return held && this.overview?.state === "recording" ? "stopped" : (this.overview?.unfinished ?? "still running");
  }

  /** What a breakpoint calls the node of a row: its body's whole name. */
  static body(row: LedgerRow): string {
    return row.title.split(" (")[0]!;
  }

  rowOfNode(node: number, gradient: boolean): LedgerRow | undefined {
    const group = this.overview?.groups[String(node)] ?? node;
    return this.row(`n${group}${gradient ? "g" : ""}`) ?? this.row(`n${group}`);
  }

  /** Whether somebody has selected anything: until then the panel chooses where to look first. */
  chosen = false;

  select(selection: Partial<Selection>): void {
    this.chosen = true;
    this.selection = { ...this.selection, ...selection };
    this.path.visit(this.selection);
    this.emit("selection");
  }

  /** What was selected before, or after that again. */
  readonly path = new Path();
  go(by: -1 | 1): void {
    const to = this.path.go(by);
    if (!to) return;
    this.selection = to;
    this.emit("selection");
  }

  /** When the selected call was, once it is known: for an arrow where it is out of sight. */
  span: { call: number; start: number; end: number } | null = null;

  open(tab: Tab): void {
    if (tab === this.tab) return;
    this.tab = tab;
    this.emit("tab");
  }

  /** What the axis leaves out. Views are on the folded axis. */
  folds: Folds = NO_FOLDS;

  /** The whole recording, on the folded axis. */
  whole(): View {
    return { start: this.folds.at(this.overview?.start_ns ?? 0), end: this.folds.at(this.overview?.end_ns ?? 1e9) };
  }

  look(start: number, end: number): void {
    const { start: first, end: last } = this.whole();
    const view = clampView(start, end, first, last);
    if (view.start === this.view.start && view.end === this.view.end) return;
    this.view = view;
    this.emit("view");
  }

  /** `tf.data 2`: the name of the thread's lane; TensorFlow's own threads have no names. */
  threadName(id: number): string {
    const lane = this.lanes.of.get(id);
    if (lane !== undefined) return this.lanes.rows[lane]!.name;
    return this.overview?.threads.find((thread) => thread.id === id)?.name ?? `thread ${id}`;
  }

  nodeName(id: number): string {
    return this.overview?.names[String(id)] ?? `node ${id}`;
  }
}

const LONGEST_PATH = 200;

/** The selections that somebody made, as a browser keeps its pages. */
export class Path {
  private readonly places: Selection[] = [];
  private at = -1;

  visit(place: Selection): void {
    const now = this.places[this.at];
    if (now && now.key === place.key && now.call === place.call) return;
    this.places.splice(this.at + 1, Infinity, place);
    if (this.places.length > LONGEST_PATH) this.places.shift();
    this.at = this.places.length - 1;
  }

  go(by: -1 | 1): Selection | null {
    const place = this.places[this.at + by];
    if (!place) return null;
    this.at += by;
    return place;
  }
}

const SHORTEST_NS = 200;

/** A stretch of time inside the recording, neither reversed nor shorter than can be drawn. */
export function clampView(start: number, end: number, first: number, last: number): View {
  const whole = Math.max(last - first, SHORTEST_NS);
  const length = Math.min(Math.max(end - start, SHORTEST_NS), whole * 1.02);
  const low = Math.min(Math.max(start, first - whole * 0.01), last + whole * 0.01 - length);
  return { start: low, end: low + length };
}

/** The middle of what a view has of a stretch of time, as a share of the view; of the view where it has nothing of it. */
export function middleOf(view: View, start: number, end: number): number {
  const [from, to] = [Math.max(view.start, start), Math.min(view.end, end)];
  return from <= to ? ((from + to) / 2 - view.start) / (view.end - view.start) : 0.5;
}
