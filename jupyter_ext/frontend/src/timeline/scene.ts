// What is on the timeline now: the last answer, its lanes, and where things are. No drawing here.
import {
  beginOf,
  bins,
  callsOf,
  ERROR,
  noCalls,
  PARTS,
  turnOf,
  type Calls,
} from "../data/columns";
import type { Arrays, StopSpan, ThreadFacts, Trace, Viewport } from "../data/protocol";
import { NO_FOLDS, type Folds } from "./folds";
import { noLanes, packLanes, type Lanes } from "./lanes";
import type { Scale } from "./scale";

export const LANE = 26;
/** Below this, single calls are summed into columns. */
export const NARROW_PX = 4;
export const COLUMN_PX = 2;

export interface Runs {
  length: number;
  id: Float64Array;
  thread: Int32Array;
  function: Int32Array;
  /** 1 backward, 2 error */
  flags: Uint8Array;
  start: Float64Array;
  end: Float64Array;
}

/** Of the folded axis. */
export interface Sums {
  values: Float32Array;
  start: number;
  end: number;
  width: number;
  lanes: Map<number, number>;
}

export class Scene {
  viewport: Viewport | null = null;
  calls: Calls = noCalls();
  runs: Runs | null = null;
  traces: Trace[] = [];
  /** Lanes from top to bottom. */
  lanes: Lanes = noLanes();
  /** What the axis leaves out. */
  folds: Folds = NO_FOLDS;
  stops: readonly StopSpan[] = [];
  private sums: Sums | null = null;
  private typical = NaN;

  take(viewport: Viewport, arrays: Arrays, threads: readonly ThreadFacts[]): void {
    this.viewport = viewport;
    this.traces = viewport.traces;
    this.calls = viewport.mode === "calls" ? callsOf(arrays) : callsOf(arrays, "mark_");
    const pick = (name: string): never => arrays[`run_${name}`] as never;
    const id: Float64Array = pick("id");
    this.runs = {
      length: id.length,
      id,
      thread: pick("thread"),
      function: pick("function"),
      flags: pick("flags"),
      start: pick("start"),
      end: pick("end"),
    };
    this.sums = null;
    if (viewport.mode === "bins") {
      const threads = viewport.threads ?? [];
      this.sums = {
        values: arrays["bins"] as Float32Array,
        start: this.folds.at(viewport.start_ns),
        end: this.folds.at(viewport.end_ns),
        width: viewport.width ?? 1,
        lanes: new Map(threads.map((thread, i) => [thread, i])),
      };
    }
    this.typical = this.median();
    const seen = new Set<number>([
      ...(viewport.threads ?? []),
      ...this.calls.thread,
      ...this.runs.thread,
      ...this.traces.map((trace) => trace.thread),
      ...this.stops.flatMap((stop) => (stop.thread === null ? [] : [stop.thread])),
    ]);
    for (const thread of this.lanes.of.keys()) seen.add(thread);
    const known = new Map(threads.map((thread) => [thread.id, thread]));
    const facts = [...seen].map((id) => known.get(id) ?? { id, name: `thread ${id}`, pool: null, first_ns: null, last_ns: null });
    this.lanes = packLanes(facts, this.lanes);
  }

  /** Whether single calls are wide enough to be drawn. */
  single(scale: Scale): boolean {
    if (this.viewport?.mode !== "calls") return false;
    if (this.calls.length < 400) return true;
    return (this.typical / (scale.view.end - scale.view.start)) * scale.width >= NARROW_PX;
  }

  /** Sums a column of two pixels for what is in view. */
  columns(scale: Scale): Sums {
    if (this.sums && this.viewport?.mode === "bins") return this.sums;
    const { start, end } = scale.view;
    const width = Math.max(1, Math.floor(scale.width / COLUMN_PX));
    if (this.sums && this.sums.start === start && this.sums.end === end && this.sums.width === width) return this.sums;
    const lanes = this.lanes.of;
    this.sums = { values: bins(this.calls, lanes, start, end, width, this.folds), start, end, width, lanes };
    return this.sums;
  }

  /** The call at a place of the picture, and whether the place is on its bar (or on its label above). */
  hit(scale: Scale, lane: number, x: number, now: number): number | null {
    let best: number | null = null;
    let distance = 5;
    const { calls } = this;
    for (let i = 0; i < calls.length; i++) {
      if (this.lanes.of.get(calls.thread[i]!) !== lane) continue;
      const open = calls.end[i]!;
      const from = scale.x(beginOf(calls, i));
      const to = scale.x(Number.isNaN(open) ? now : open);
      const away = x < from ? from - x : x > to ? x - to : 0;
      if (away < distance || (away === 0 && distance === 0)) {
        best = i;
        distance = away;
      }
    }
    return best;
  }

  traceAt(scale: Scale, lane: number, x: number): Trace | null {
    const at = scale.ns(x);
    const found = this.traces.filter(
      (t) => this.lanes.of.get(t.thread) === lane && t.start_ns <= at && t.start_ns + t.duration_ns >= at,
    );
    return found[found.length - 1] ?? null;
  }

  runAt(scale: Scale, lane: number, x: number, now: number): number | null {
    const at = scale.ns(x);
    const runs = this.runs;
    if (!runs || this.viewport?.runs_merged) return null;
    for (let i = runs.length - 1; i >= 0; i--) {
      const end = runs.end[i]!;
      if (this.lanes.of.get(runs.thread[i]!) === lane && runs.start[i]! <= at && (Number.isNaN(end) ? now : end) >= at) return i;
    }
    return null;
  }

  private median(): number {
    const { calls } = this;
    if (!calls.length || this.viewport?.mode !== "calls") return NaN;
    const step = Math.max(1, Math.floor(calls.length / 500));
    const lengths: number[] = [];
    for (let i = 0; i < calls.length; i += step) {
      const end = calls.end[i]!;
      if (!Number.isNaN(end)) lengths.push(end - beginOf(calls, i) - calls.stopped[i]!);
    }
    lengths.sort((a, b) => a - b);
    return lengths[lengths.length >> 1] ?? NaN;
  }
}

export { ERROR, PARTS, turnOf };
