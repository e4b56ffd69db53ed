// The axis leaves out the time in which nothing but stopped calls was there: real times, and places on the folded axis.
// The same arithmetic as pyfunc_debug/report/folds.py.
import type { View } from "../state";

export class Folds {
  /** Stretches of real time in ns that are left out, in order. */
  constructor(readonly list: readonly (readonly [start: number, end: number])[] = []) {}

  /** A real time on the folded axis. */
  at(ns: number): number {
    let away = 0;
    for (const [start, end] of this.list) {
      if (ns <= start) break;
      away += Math.min(ns, end) - start;
    }
    return ns - away;
  }

  /** The real time of a place on the folded axis; of a fold its beginning. */
  real(at: number): number {
    let ns = at;
    for (const [start, end] of this.list) {
      if (ns <= start) break;
      ns += end - start;
    }
    return ns;
  }

  /** Stretches of real time between the folds of a view. */
  between(view: View): [number, number][] {
    const found: [number, number][] = [];
    let from = this.real(view.start);
    const last = this.real(view.end);
    for (const [start, end] of this.list) {
      if (end <= from) continue;
      if (start >= last) break;
      if (start > from) found.push([from, start]);
      from = end;
    }
    if (last > from) found.push([from, last]);
    return found;
  }
}

export const NO_FOLDS = new Folds();
