import { describe, expect, it } from "vitest";

import { bytes, clock, inUnit, int, middle, percent, plural, sig3, time, typeText, unitOf, waited } from "../src/format";

describe("numbers for people", () => {
  it.each([
    [0, "0"], [0.981, "0.981"], [1, "1.00"], [12.44, "12.4"], [118.4, "118"], [1234, "1,230"], [0.00462, "0.00462"],
    [4.73e-6, "4.73e-6"], [-2.56e-6, "-2.56e-6"], [1e9, "1e9"], [NaN, "NaN"], [Infinity, "inf"], [-Infinity, "-inf"], [null, ""],
  ])("%s in three significant digits is %s", (x, text) => expect(sig3(x)).toBe(text));

  it("groups thousands", () => expect(int(12480)).toBe("12,480"));
  it.each([[3_080_000, "3.08 ms"], [18_400_000_000, "18.4 s"], [950, "950 ns"], [12_300, "12.3 µs"], [0, "0"]])("%s ns is %s", (ns, text) =>
    expect(time(ns)).toBe(text));
  it("keeps one unit a column, that of its middle number", () => {
    const unit = unitOf([3e6, 4e6, null, 900e6]);
    expect(unit.name).toBe("ms");
    expect([3e6, 4e6, 900e6].map((ns) => inUnit(ns, unit))).toEqual(["3.00", "4.00", "900.0"]);
  });
  it("says nothing where nothing is known", () => {
    expect(inUnit(null, unitOf([]))).toBe("");
    expect(inUnit(NaN, unitOf([]))).toBe("");
  });
  it("writes a wait below what can be told as the other times of its column", () => {
    const unit = unitOf([3e6]);
    const shown = (ns: number): string => inUnit(ns, unit);
    expect([waited(400, 1000, "native", shown), inUnit(400, unit)]).toEqual(["<0.01", "<0.01"]);
    expect(waited(400, 50_000, "bound", shown)).toBe("<0.05");
    expect(waited(80_000, 50_000, "bound", shown)).toBe("≤ 0.08");
    expect(waited(400, 50_000, "bound", time)).toBe("< 50 µs");
  });
  it("counts time like a clock", () => {
    expect(clock(23e9)).toBe("00:23");
    expect(clock(3723e9)).toBe("1:02:03");
  });
  it("shows a small share as less than one, never as none", () => {
    expect(percent(0.004)).toBe("<1");
    expect(percent(0)).toBe("0");
    expect(percent(0.556)).toBe("56");
  });
  it("cuts long names in the middle", () => expect(middle("a_very_long_function_name", 11)).toBe("a_ver…_name"));
  it("names types, sizes and counts", () => {
    expect(typeText("float32", [8, 64])).toBe("float32[8, 64]");
    expect(typeText("variant", null)).toBe("variant");
    expect(bytes(4096)).toBe("4.10 kB");
    expect(plural(1, "call")).toBe("1 call");
    expect(plural(1200, "call")).toBe("1,200 calls");
  });
});
