import { describe, expect, it } from "vitest";

import { decodeArrays, type LedgerRow, type Overview } from "../src/data/protocol";
import { clampView, middleOf, Path, State } from "../src/state";
import { luminance } from "../src/theme";
import { makeScale, ticks } from "../src/timeline/scale";
import { arrange, nameOf } from "../src/views/ledger";
import { MAX_HEIGHT, scrollTo, windowOf } from "../src/views/rows";

const row = (key: string, parent: string | null, extra: Partial<LedgerRow> = {}): LedgerRow => ({
  key, parent, level: parent ? 1 : 0, type: parent ? "node" : "function", name: key, title: key, kind: "", function: 1, nodes: [],
  call_kind: parent ? "forward" : null, traced: null, runs: null, calls: null, errors: null, mean_ns: null, p95_ns: null, share: null,
  parts: null, file: null, line: null, place: "", origin: "user", severity: null, why: [], ...extra,
});

describe("a call without an end", () => {
  const told = (facts: Partial<Overview>, held: boolean): string => Object.assign(new State(), { overview: facts as Overview }).unended(held);

  it("is said to be what the recording says, and to be held only while the program lives", () => {
    expect(told({ state: "recording", unfinished: "still running" }, false)).toBe("still running");
    expect(told({ state: "recording", unfinished: "still running" }, true)).toBe("stopped");
    for (const held of [true, false]) expect(told({ state: "interrupted", unfinished: "had not ended" }, held)).toBe("had not ended");
  });
});

describe("the ledger's tree", () => {
  const rows = [row("f1", null), row("augment", "f1", { calls: 5, mean_ns: 9 }), row("decode", "f1", { calls: 7, mean_ns: null }), row("f2", null), row("huber", "f2", { calls: 50 }), row("grad", "huber", { calls: 1 })];
  const keys = (list: LedgerRow[]): string[] => list.map((item) => item.key);

  it("tells functions of one name apart by their place, and leaves other names alone", () => {
    const twins = [row("a", null, { name: "f", place: "cell [3]:1" }), row("b", null, { name: "f", place: "cell [3]:9" }), row("c", null, { name: "g", place: "cell [3]:12" })];
    expect(twins.map((one) => nameOf(one, twins))).toEqual([["f", "cell [3]:1"], ["f", "cell [3]:9"], ["g", ""]]);
  });
  it("keeps the program's order without a sort", () =>
    expect(keys(arrange(rows, "", null, new Set()))).toEqual(["f1", "augment", "decode", "f2", "huber", "grad"]));
  it("sorted, shows the worst row on top whatever is folded, unknown numbers last in both directions", () => {
    expect(keys(arrange(rows, "", { column: "calls", descending: true }, new Set(["f2"])))).toEqual(["huber", "decode", "augment", "grad", "f1", "f2"]);
    for (const descending of [true, false]) {
      const order = keys(arrange(rows, "", { column: "mean_ns", descending }, new Set()));
      expect(order.indexOf("augment")).toBeLessThan(order.indexOf("decode"));
    }
  });
  it("filters to matching rows with their parents and their children", () => {
    expect(keys(arrange(rows, "hub", null, new Set()))).toEqual(["f2", "huber", "grad"]);
    expect(keys(arrange(rows, "nothing", null, new Set()))).toEqual([]);
    expect(keys(arrange(rows, "*ode", null, new Set()))).toEqual(["f1", "decode"]);
    expect(keys(arrange(rows, "ode*", null, new Set()))).toEqual([]);
  });
  it("folds, and opens what a filter found", () => {
    expect(keys(arrange(rows, "", null, new Set(["f1"])))).toEqual(["f1", "f2", "huber", "grad"]);
    expect(keys(arrange(rows, "decode", null, new Set(["f1"])))).toEqual(["f1", "decode"]);
  });
});

describe("rows in sight", () => {
  it("makes only these and a few about them", () => {
    const sight = windowOf(100_000, 22, 22_000, 220);
    expect(sight.first).toBe(994);
    expect(sight.count).toBeLessThan(30);
    expect(sight.top).toBe(994 * 22);
  });
  it("stays inside short tables", () => expect(windowOf(3, 22, 0, 220)).toEqual({ first: 0, count: 3, height: 66, top: 0 }));
  it("reaches the last of ten million rows below the browser's limit", () => {
    const total = 10_000_000;
    const end = windowOf(total, 22, MAX_HEIGHT - 220, 220);
    expect(end.height).toBe(MAX_HEIGHT);
    expect(end.first + end.count).toBe(total);
  });
  it("scrolls to a row only if it is out of sight", () => {
    expect(scrollTo(5, 1000, 22, 0, 220)).toBe(0);
    const to = scrollTo(500, 1000, 22, 0, 220);
    expect(to).toBeGreaterThan(490 * 22);
    expect(to).toBeLessThan(500 * 22);
    const place = scrollTo(7_654_321, 10_000_000, 22, 0, 220);
    const sight = windowOf(10_000_000, 22, place, 220);
    expect(sight.first).toBeLessThanOrEqual(7_654_321);
    expect(sight.first + sight.count).toBeGreaterThan(7_654_321);
  });
});

describe("time on the axis", () => {
  it("makes ticks of 1, 2, 5 with just enough decimals, in absolute seconds", () => {
    expect(ticks({ start: 2.251e9, end: 2.289e9 }, 700).major.map((tick) => tick.label)).toEqual(["2.255 s", "2.260 s", "2.265 s", "2.270 s", "2.275 s", "2.280 s", "2.285 s"]);
    expect(ticks({ start: 0, end: 24e9 }, 300).major.map((tick) => tick.label)).toEqual(["0 s", "5 s", "10 s", "15 s", "20 s"]);
    for (const tick of ticks({ start: 1e9, end: 1e9 + 500 }, 700).major) expect(tick.label).toMatch(/ µs$/);
  });
  it("maps there and back", () => {
    const scale = makeScale({ start: 100, end: 200 }, 70, 500);
    expect(scale.x(150)).toBe(320);
    expect(scale.ns(320)).toBe(150);
  });
  it("never shows less than can be drawn, nor anything outside the recording", () => {
    expect(clampView(5, 6, 0, 1e9).end - clampView(5, 6, 0, 1e9).start).toBe(200);
    const view = clampView(-5e9, 9e9, 0, 1e9);
    expect(view.start).toBeGreaterThanOrEqual(-2e7);
    expect(view.end).toBeLessThanOrEqual(1.02e9);
  });

  it("is zoomed about the part of a call that it shows, also of one at the end of a recording", () => {
    const [first, last, start, end] = [0, 100e6, 99.9e6, 99.95e6];
    let view = clampView(start - 8e6, end + 8e6, first, last); // it cannot go far beyond the end: the call is on its right
    expect(middleOf(view, start, end)).toBeGreaterThan(0.8);
    for (let press = 0; press < 20; press++) {
      const centre = view.start + (view.end - view.start) * middleOf(view, start, end);
      view = clampView(centre - (centre - view.start) / 1.2, centre + (view.end - centre) / 1.2, first, last);
    }
    expect(view.end - view.start).toBeLessThan(1e6);
    expect(view.start <= end && view.end >= start).toBe(true);
    expect(middleOf(view, 0, 1)).toBe(0.5);
  });
});

describe("binary answers", () => {
  it("reads arrays from buffers that are not aligned", () => {
    const bytes = new Uint8Array(1 + 16 + 2);
    bytes.set(new Uint8Array(new Float64Array([1.5, -2]).buffer), 1);
    bytes.set([7, 9], 17);
    const view = bytes.subarray(1);
    const arrays = decodeArrays({ a: ["float64", 0, 0, 2], b: ["uint8", 0, 16, 2] }, [view]);
    expect([...arrays["a"]!]).toEqual([1.5, -2]);
    expect([...arrays["b"]!]).toEqual([7, 9]);
  });
  it("says which buffer is missing", () => expect(() => decodeArrays({ a: ["int32", 3, 0, 1] }, [])).toThrow(/buffer 3/));
});

describe("themes", () => {
  it.each([["rgb(255, 255, 255)", 1], ["rgb(0, 0, 0)", 0], ["color(srgb 1 1 1)", 1], ["rgba(17, 17, 17, 1)", 17 / 255]])("%s", (colour, light) =>
    expect(luminance(colour)).toBeCloseTo(light));
});

describe("back and forward", () => {
  it("goes through what was selected, and forgets what was ahead when something else is selected", () => {
    const path = new Path();
    for (const call of [1, 2, 2, 3]) path.visit({ key: "n1", call });
    expect(path.go(1)).toBeNull();
    expect([path.go(-1)?.call, path.go(-1)?.call, path.go(-1), path.go(1)?.call]).toEqual([2, 1, null, 2]);
    path.visit({ key: "n2", call: 9 });
    expect([path.go(1), path.go(-1)?.call]).toEqual([null, 2]);
  });
});
