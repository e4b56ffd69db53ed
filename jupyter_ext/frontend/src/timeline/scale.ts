// Time to pixels, and the ticks of the axis: steps of 1, 2, 5 at 70 px or more, with just enough decimals.
import { tickStep } from "d3-array";

import type { View } from "../state";
import { NO_FOLDS, type Folds } from "./folds";

/** Width of a fold; where it must be narrower than `DRAWN` it is only a mark on the axis. */
const FOLD = 64;
export const DRAWN = 12;

export interface Scale {
  /** On the folded axis. */
  view: View;
  left: number;
  width: number;
  folds: Folds;
  /** Folds in view: from where to where. */
  gaps: { from: number; to: number; ns: number }[];
  /** Pixel of a real time. */
  x(ns: number): number;
  /** Real time of a pixel. */
  ns(x: number): number;
  /** Pixel of a place on the folded axis. */
  place(at: number): number;
  /** Place on the folded axis of a pixel. */
  at(x: number): number;
}

export function makeScale(view: View, left: number, width: number, folds: Folds = NO_FOLDS, wide = FOLD): Scale {
  const inside = folds.list.map(([start, end]) => ({ start, end, at: folds.at(start) })).filter((fold) => fold.at >= view.start && fold.at <= view.end);
  const gap = inside.length ? Math.min(wide, (width * 0.4) / inside.length) : 0;
  const perNs = (width - gap * inside.length) / (view.end - view.start);
  const place = (at: number): number => left + (at - view.start) * perNs + gap * inside.filter((fold) => fold.at < at).length;
  const x = (ns: number): number => {
    let pixels = left + (folds.at(ns) - view.start) * perNs;
    for (const fold of inside) pixels += ns >= fold.end ? gap : ns > fold.start ? (gap * (ns - fold.start)) / (fold.end - fold.start) : 0;
    return pixels;
  };
  const find = (pixel: number): [at: number, inFold: number, fold: (typeof inside)[number] | null] => {
    let rest = pixel;
    for (const fold of inside) {
      const from = left + (fold.at - view.start) * perNs;
      if (rest <= from) break;
      if (rest <= from + gap) return [fold.at, (rest - from) / gap, fold];
      rest -= gap;
    }
    return [view.start + (rest - left) / perNs, 0, null];
  };
  return {
    view,
    left,
    width,
    folds,
    gaps: inside.map((fold) => ({ from: x(fold.start), to: x(fold.end), ns: fold.end - fold.start })),
    x,
    place,
    at: (pixel) => find(pixel)[0],
    ns: (pixel) => {
      const [at, share, fold] = find(pixel);
      return fold ? fold.start + share * (fold.end - fold.start) : folds.real(at);
    },
  };
}

export interface Tick {
  ns: number;
  label: string;
}

/** Major ticks with labels in absolute seconds (in µs where that would need too many decimals), and the step between minor ones. */
export function ticks(view: View, width: number, gap = 70, folds: Folds = NO_FOLDS): { major: Tick[]; minor: number } {
  const count = Math.max(1, Math.floor(width / gap));
  const step = tickStep(view.start, view.end, count);
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / 1e9) - 1e-9));
  const unit = decimals > 6 ? { name: "µs", ns: 1e3 } : { name: "s", ns: 1e9 };
  const digits = unit.name === "s" ? decimals : Math.max(0, Math.ceil(-Math.log10(step / 1e3) - 1e-9));
  const major: Tick[] = [];
  for (const [from, to] of folds.between(view)) {
    for (let i = Math.ceil(from / step); i <= Math.floor(to / step) && major.length < 200; i++) {
      const ns = i * step;
      const number = ns / unit.ns;
      major.push({ ns, label: `${Math.abs(number) < 1e-12 ? (0).toFixed(digits) : number.toFixed(digits)} ${unit.name}` });
    }
  }
  return { major, minor: step / 5 };
}
