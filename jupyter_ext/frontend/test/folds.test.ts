import { describe, expect, it } from "vitest";
import { Folds } from "../src/timeline/folds";
import { makeScale } from "../src/timeline/scale";

describe("a stop on the axis", () => {
  it("is left out of it, and every pixel leads back to its time", () => {
    const folds = new Folds([[100, 1100]]);
    expect([50, 100, 600, 1100, 1200].map((ns) => folds.at(ns))).toEqual([50, 100, 100, 100, 200]);
    const scale = makeScale({ start: 0, end: 200 }, 10, 464, folds);
    expect(scale.gaps).toEqual([{ from: 210, to: 274, ns: 1000 }]);
    for (const ns of [0, 40, 100, 600, 1100, 1150, 1200]) expect(scale.ns(scale.x(ns))).toBeCloseTo(ns, 6);
    expect(folds.between({ start: 0, end: 200 })).toEqual([[0, 100], [1100, 1200]]);
  });

  it("moves nothing that was there before while it goes on", () => {
    const views = [1_000, 5_000, 60_000].map((now) => {
      const folds = new Folds([[100, now]]);
      return makeScale({ start: 0, end: folds.at(now) + 20 }, 0, 500, folds);
    });
    const places = views.map((scale) => [0, 30, 99, 100].map((ns) => scale.x(ns)));
    expect(places[1]).toEqual(places[0]);
    expect(places[2]).toEqual(places[0]);
    expect(views.map((scale) => scale.gaps[0]!.to - scale.gaps[0]!.from)).toEqual([64, 64, 64]);
  });
});
