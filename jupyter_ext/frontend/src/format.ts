// Numbers for people: three significant digits, one unit a column, and words for what is not known.

/** Three significant digits without exponent where that stays short: 0.981, 12.4, 1,230, 4.73e-6. */
export function sig3(x: number | null | undefined): string {
  if (x === null || x === undefined) return "";
  if (Number.isNaN(x)) return "NaN";
  if (!Number.isFinite(x)) return x > 0 ? "inf" : "-inf";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size < 1e-3 || size >= 1e7) return x.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e");
  const digits = Math.max(0, 2 - Math.floor(Math.log10(size)));
  if (digits > 0) return x.toFixed(digits);
  const step = 10 ** (Math.floor(Math.log10(size)) - 2);
  return int(Math.round(x / step) * step);
}

/** 12480 -> 12,480 */
export const int = (n: number): string => String(Math.round(n)).replace(/\B(?=(\d{3})+(?!\d))/g, ",");

export interface Unit {
  name: string;
  ns: number;
}
const UNITS: Unit[] = [
  { name: "µs", ns: 1e3 },
  { name: "ms", ns: 1e6 },
  { name: "s", ns: 1e9 },
];

/** The one unit of a column whose typical number is this. */
export function unitFor(ns: number): Unit {
  return ns < 2e5 ? UNITS[0]! : ns < 2e10 ? UNITS[1]! : UNITS[2]!;
}

/** A unit for many numbers: that of their middle one. */
export function unitOf(values: Iterable<number | null | undefined>): Unit {
  const known = [...values].filter((x): x is number => typeof x === "number" && x > 0).sort((a, b) => a - b);
  return unitFor(known[known.length >> 1] ?? 1e6);
}

/** A time in a unit; two decimals below 100, as in every column of the panel. */
export function inUnit(ns: number | null | undefined, unit: Unit): string {
  if (ns === null || ns === undefined || Number.isNaN(ns)) return "";
  const x = ns / unit.ns;
  // Something is never shown as nothing.
  if (x > 0 && x < 0.005) return "<0.01";
  return Math.abs(x) < 100 ? x.toFixed(2) : Math.abs(x) < 1000 ? x.toFixed(1) : int(x);
}

/** A wait for the GIL: in words where it is below what its grade can tell, with "≤" where it is a bound. */
export const waited = (ns: number, resolution: number, grade: string | null, show: (ns: number) => string = time): string =>
  ns < resolution ? (show === time ? `< ${resolution / 1000} µs` : show(resolution).replace(/^<?/, "<").replace(/\.0+$/, "")) : `${grade === "bound" ? "≤ " : ""}${show(ns)}`;

/** A time on its own: 3.08 ms, 18.4 s. */
export function time(ns: number): string {
  const size = Math.abs(ns);
  if (size === 0) return "0";
  if (size < 1e3) return `${sig3(ns)} ns`;
  if (size < 1e6) return `${sig3(ns / 1e3)} µs`;
  if (size < 1e9) return `${sig3(ns / 1e6)} ms`;
  return size < 6e11 ? `${sig3(ns / 1e9)} s` : clock(ns);
}

/** 12.6 s */
export const seconds = (s: number): string => (s < 100 ? `${s.toFixed(1)} s` : `${sig3(s)} s`);

/** 00:23, 1:02:03 */
export function clock(ns: number): string {
  const s = Math.max(0, Math.floor(ns / 1e9));
  const two = (n: number): string => String(n).padStart(2, "0");
  const hours = Math.floor(s / 3600);
  const rest = `${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
  return hours ? `${hours}:${rest}` : rest;
}

export function bytes(n: number): string {
  return n < 1000 ? `${n} B` : n < 1e6 ? `${sig3(n / 1e3)} kB` : n < 1e9 ? `${sig3(n / 1e6)} MB` : `${sig3(n / 1e9)} GB`;
}

/** 1 call, 12 calls */
export const plural = (n: number, one: string): string => `${int(n)} ${n === 1 ? one : `${one}s`}`;

/** 12.4 -> "12", 0.4 -> "<1", for shares of a whole. */
export function percent(share: number): string {
  const x = share * 100;
  return x > 0 && x < 1 ? "<1" : String(Math.round(x));
}

/** `float32[8, 64, 64, 3]` */
export const typeText = (dtype: string, shape: readonly number[] | null): string =>
  shape === null ? dtype : `${dtype}[${shape.join(", ")}]`;

/** Middle of a long name cut out; paths and numbers are never cut. */
export function middle(text: string, length: number): string {
  if (text.length <= length) return text;
  const head = Math.ceil((length - 1) / 2);
  return `${text.slice(0, head)}…${text.slice(text.length - (length - 1 - head))}`;
}
