import { describe, expect, it } from "vitest";

import type { Trace } from "../src/data/protocol";
import { firstInside } from "../src/timeline/draw";
import { Folds } from "../src/timeline/folds";
import { makeScale, ticks } from "../src/timeline/scale";
import { between, bins, cover, noCalls, PARTS, take, type Calls } from "../src/data/columns";

function calls(rows: { start: number; end: number; wait?: number; released?: number; flags?: number; thread?: number; stopped?: number }[]): Calls {
  const n = rows.length;
  return {
    ...noCalls(),
    length: n,
    id: Float64Array.from(rows, (_, i) => i + 1),
    node: new Int32Array(n).fill(1),
    thread: Int32Array.from(rows, (row) => row.thread ?? 1),
    flags: Uint8Array.from(rows, (row) => row.flags ?? 0),
    start: Float64Array.from(rows, (row) => row.start),
    end: Float64Array.from(rows, (row) => row.end),
    wait: Float32Array.from(rows, (row) => row.wait ?? NaN),
    held: new Float32Array(n).fill(NaN),
    released: Float32Array.from(rows, (row) => row.released ?? NaN),
    reacquire: new Float32Array(n).fill(NaN),
    stopped: Float64Array.from(rows, (row) => row.stopped ?? 0),
  };
}

const part = (values: Float32Array, name: (typeof PARTS)[number], width: number, lane = 0): number[] =>
  [...values.subarray((lane * 4 + PARTS.indexOf(name)) * width, (lane * 4 + PARTS.indexOf(name) + 1) * width)];

describe("calls as columns", () => {
  it("finds the calls that touch a stretch of time, with their wait, and those that still run", () => {
    const all = calls([{ start: 0, end: 10 }, { start: 25, end: 30, wait: 10 }, { start: 40, end: 50 }, { start: 5, end: NaN }]);
    expect([...between(all, 12, 20)]).toEqual([1, 3]);
    expect([...take(all, between(all, 45, 60)).id]).toEqual([3, 4]);
  });

  it("covers whole and part columns by their exact share", () => {
    const into = new Float32Array(4);
    cover(into, 0, 4, 0.5, 2.25);
    expect([...into]).toEqual([0.5, 1, 0.25, 0]);
    cover(into, 0, 4, -5, -1);
    cover(into, 0, 4, 3.5, 99);
    expect([...into]).toEqual([0.5, 1, 0.25, 0.5]);
  });

  it("splits a call into wait, held and released, and never fills a column more than once", () => {
    const values = bins(calls([{ start: 20, end: 40, wait: 10, released: 10 }]), new Map([[1, 0]]), 0, 40, 4);
    expect(part(values, "wait", 4)).toEqual([0, 1, 0, 0]);
    expect(part(values, "held", 4)).toEqual([0, 0, 1, 0]);
    expect(part(values, "released", 4)).toEqual([0, 0, 0, 1]);
    const twice = bins(calls([{ start: 0, end: 10 }, { start: 0, end: 10 }]), new Map([[1, 0]]), 0, 10, 1);
    expect(part(twice, "held", 1)).toEqual([1]);
  });

  it("puts gradient calls apart, gives each thread its lane, and draws running calls to the edge", () => {
    const lanes = new Map([[7, 0], [9, 1]]);
    const values = bins(calls([{ start: 0, end: 5, flags: 1, thread: 7 }, { start: 5, end: NaN, thread: 9 }]), lanes, 0, 10, 2);
    expect(part(values, "gradient", 2, 0)).toEqual([1, 0]);
    expect(part(values, "held", 2, 0)).toEqual([0, 0]);
    expect(part(values, "held", 2, 1)).toEqual([0, 1]);
  });

  it("counts a stop as nothing, and leaves it out of a folded axis", () => {
    const stopped = calls([{ start: 0, end: 100, released: 10, stopped: 80 }]);
    const lane = new Map([[1, 0]]);
    expect(part(bins(stopped, lane, 0, 100, 10), "held", 10)).toEqual([1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    const folds = new Folds([[5, 85]]);
    expect(part(bins(stopped, lane, folds.at(0), folds.at(100), 2, folds), "held", 2)).toEqual([1, 0]);
    expect(part(bins(stopped, lane, folds.at(0), folds.at(100), 2, folds), "released", 2)).toEqual([0, 1]);
  });
});

describe("a folded axis", () => {
  const folds = new Folds([[100, 1100], [2000, 2500]]);

  it("goes from real times to places and back", () => {
    expect([0, 100, 600, 1100, 1200, 3000].map((ns) => folds.at(ns))).toEqual([0, 100, 100, 100, 200, 1500]);
    expect([0, 100, 101, 1500].map((at) => folds.real(at))).toEqual([0, 100, 1101, 3000]);
    expect(folds.between({ start: 0, end: 1500 })).toEqual([[0, 100], [1100, 2000], [2500, 3000]]);
  });

  it("gives each fold the same room and inverts what it draws", () => {
    const scale = makeScale({ start: 0, end: 1500 }, 10, 600, folds);
    expect(scale.gaps.map((gap) => Math.round(gap.to - gap.from))).toEqual([64, 64]);
    expect(scale.x(3000)).toBeCloseTo(610);
    for (const ns of [0, 50, 99, 300, 1099, 1101, 1999, 2200, 2600]) expect(scale.ns(scale.x(ns))).toBeCloseTo(ns, 3);
    expect(scale.at(scale.x(600))).toBe(100);
    const labels = ticks(scale.view, 600, 70, folds).major.map((tick) => tick.ns);
    expect(labels.every((ns) => !(ns > 100 && ns < 1100) && !(ns > 2000 && ns < 2500))).toBe(true);
  });
});

it("ends the label of a graph trace where one inside it begins", () => {
  const trace = (id: number, start_ns: number, parent: number | null): Trace =>
    ({ id, start_ns, parent, duration_ns: 1, function: 1, ordinal: 1, name: "f", thread: 1, reason: [], signature: "", error: null });
  const traces = [trace(1, 0, null), trace(3, 9, 1), trace(2, 5, 1), trace(4, 6, 2)];
  expect(traces.map((one) => firstInside(one, traces))).toEqual([5, Infinity, 6, Infinity]);
});
