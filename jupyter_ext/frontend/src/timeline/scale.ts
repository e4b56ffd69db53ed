// Time to pixels, and the ticks of the axis: steps of 1, 2, 5 at 70 px or more, with just enough decimals.
import { tickStep } from "d3-array";

import type { View } from "../state";

export interface Scale {
  view: View;
  left: number;
  width: number;
  x(ns: number): number;
  ns(x: number): number;
}

export function makeScale(view: View, left: number, width: number): Scale {
  const perNs = width / (view.end - view.start);
  return {
    view,
    left,
    width,
    x: (ns) => left + (ns - view.start) * perNs,
    ns: (x) => view.start + (x - left) / perNs,
  };
}

export interface Tick {
  ns: number;
  label: string;
}


/** Major ticks with labels in absolute seconds (in µs where that would need too many decimals), and the step between minor ones. */
export function ticks(view: View, width: number, gap = 70): { major: Tick[]; minor: number } {
  const count = Math.max(1, Math.floor(width / gap));
  const step = tickStep(view.start, view.end, count);
  const first = Math.ceil(view.start / step);
  const last = Math.floor(view.end / step);
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / 1e9) - 1e-9));
  const unit = decimals > 6 ? { name: "µs", ns: 1e3 } : { name: "s", ns: 1e9 };
  const digits = unit.name === "s" ? decimals : Math.max(0, Math.ceil(-Math.log10(step / 1e3) - 1e-9));
  const major: Tick[] = [];
  for (let i = first; i <= last && major.length < 200; i++) {
    const ns = i * step;
    const number = ns / unit.ns;
    major.push({ ns, label: `${Math.abs(number) < 1e-12 ? (0).toFixed(digits) : number.toFixed(digits)} ${unit.name}` });
  }
  return { major, minor: step / 5 };
}
