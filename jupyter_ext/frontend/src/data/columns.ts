// Calls as typed arrays, and the sums the timeline draws when single calls are narrower than a pixel.
// The same arithmetic as pyfunc_debug/report/timeline.py, for data that are in the page already.
import { NO_FOLDS, type Folds } from "../timeline/folds";
import type { Arrays } from "./protocol";

export interface Calls {
  length: number;
  id: Float64Array;
  node: Int32Array;
  thread: Int32Array;
  /** 1 gradient, 2 error, 4 running, 8 interrupted */
  flags: Uint8Array;
  start: Float64Array;
  /** NaN while it runs */
  end: Float64Array;
  /** ns, NaN where not measured */
  wait: Float32Array;
  held: Float32Array;
  released: Float32Array;
  reacquire: Float32Array;
  /** How long it was held at stops, in none of the others. */
  stopped: Float64Array;
}

export const GRADIENT = 1;
export const ERROR = 2;
export const RUNNING = 4;
export const INTERRUPTED = 8;
export const PARTS = ["held", "gradient", "released", "wait"] as const;

export function callsOf(arrays: Arrays, prefix = ""): Calls {
  const pick = <T>(name: string): T => {
    const array = arrays[prefix + name];
    if (!array) throw new Error(`the answer has no array ${prefix + name}`);
    return array as unknown as T;
  };
  const id = pick<Float64Array>("id");
  return {
    length: id.length,
    id,
    node: pick("node"),
    thread: pick("thread"),
    flags: pick("flags"),
    start: pick("start"),
    end: pick("end"),
    wait: pick("wait"),
    held: pick("held"),
    released: pick("released"),
    reacquire: pick("reacquire"),
    stopped: (arrays[`${prefix}stopped`] as Float64Array | undefined) ?? new Float64Array(id.length),
  };
}

export const noCalls = (): Calls => ({
  length: 0,
  id: new Float64Array(),
  node: new Int32Array(),
  thread: new Int32Array(),
  flags: new Uint8Array(),
  start: new Float64Array(),
  end: new Float64Array(),
  wait: new Float32Array(),
  held: new Float32Array(),
  released: new Float32Array(),
  reacquire: new Float32Array(),
  stopped: new Float64Array(),
});

/** When the call was ready to run: its start, less what it waited. */
export const beginOf = (calls: Calls, i: number): number => calls.start[i]! - (calls.wait[i]! || 0);

/** Where in its body a call begins to wait to get the GIL back, were all of that at its end. */
export const lateOf = (calls: Calls, i: number, end: number): number =>
  Math.max(calls.start[i]!, end - (calls.reacquire[i]! || 0));

/** Where it lets the GIL go, were all of that right before (the sums are known, the order is not). */
export const turnOf = (calls: Calls, i: number, end: number): number =>
  Math.max(calls.start[i]!, end - (calls.released[i]! || 0) - (calls.reacquire[i]! || 0));
/** Positions of the calls that touch a stretch of time. */
export function between(calls: Calls, start: number, end: number): Int32Array {
  const found = new Int32Array(calls.length);
  let count = 0;
  for (let i = 0; i < calls.length; i++) {
    const until = calls.end[i]!;
    if (beginOf(calls, i) <= end && !(until < start)) found[count++] = i;
  }
  return found.subarray(0, count);
}

/** A copy of some calls. */
export function take(calls: Calls, places: Int32Array): Calls {
  const pick = <T extends Float64Array | Float32Array | Int32Array | Uint8Array>(from: T, to: T): T => {
    for (let i = 0; i < places.length; i++) to[i] = from[places[i]!]!;
    return to;
  };
  const n = places.length;
  return {
    length: n,
    id: pick(calls.id, new Float64Array(n)),
    node: pick(calls.node, new Int32Array(n)),
    thread: pick(calls.thread, new Int32Array(n)),
    flags: pick(calls.flags, new Uint8Array(n)),
    start: pick(calls.start, new Float64Array(n)),
    end: pick(calls.end, new Float64Array(n)),
    wait: pick(calls.wait, new Float32Array(n)),
    held: pick(calls.held, new Float32Array(n)),
    released: pick(calls.released, new Float32Array(n)),
    reacquire: pick(calls.reacquire, new Float32Array(n)),
    stopped: pick(calls.stopped, new Float64Array(n)),
  };
}

/** Adds the covered share of each column to `into[at + column]`, for one stretch given in columns. */
export function cover(into: Float32Array, at: number, width: number, low: number, high: number): void {
  const from = Math.max(0, low);
  const to = Math.min(width, high);
  if (!(to > from)) return;
  const first = Math.floor(from);
  const last = Math.min(width - 1, Math.floor(to));
  if (first === last) {
    into[at + first]! += to - from;
    return;
  }
  into[at + first]! += first + 1 - from;
  for (let column = first + 1; column < last; column++) into[at + column]! += 1;
  into[at + last]! += to - last;
}

/** How full each column is: lane x part x column, 0..1; `lanes` maps a thread to its lane; times are of the folded axis. */
export function bins(
  calls: Calls,
  lanes: ReadonlyMap<number, number>,
  start: number,
  end: number,
  width: number,
  folds: Folds = NO_FOLDS,
): Float32Array {
  const result = new Float32Array((Math.max(-1, ...lanes.values()) + 1) * PARTS.length * width);
  const scale = width / (end - start);
  for (let i = 0; i < calls.length; i++) {
    const lane = lanes.get(calls.thread[i]!);
    if (lane === undefined) continue;
    const base = lane * PARTS.length * width;
    const from = folds.at(calls.start[i]!);
    const open = calls.end[i]!;
    const until = Number.isNaN(open) ? end : folds.at(open);
    const away = Number.isNaN(open) ? 0 : open - calls.start[i]! - (until - from);
    const late = Math.max(from, until - (calls.reacquire[i]! || 0));
    const free = Math.max(from, late - (calls.released[i]! || 0));
    const turn = Math.max(from, free - Math.max(0, calls.stopped[i]! - away));
    const body = calls.flags[i]! & GRADIENT ? 1 : 0;
    cover(result, base + body * width, width, (from - start) * scale, (turn - start) * scale);
    if (late > free) cover(result, base + 2 * width, width, (free - start) * scale, (late - start) * scale);
    if (until > late) cover(result, base + 3 * width, width, (late - start) * scale, (until - start) * scale);
    const wait = calls.wait[i]! || 0;
    if (wait > 0) cover(result, base + 3 * width, width, (from - wait - start) * scale, (from - start) * scale);
  }
  for (let i = 0; i < result.length; i++) if (result[i]! > 1) result[i] = 1;
  return result;
}
