// Draws a scene: lanes with graph traces, runs and calls; the axis; the minimap. Only what is in view.
import { beginOf, ERROR, GRADIENT, lateOf, PARTS, turnOf } from "../data/columns";
import type { Trace } from "../data/protocol";
import { middle, time } from "../format";
import { cross, SHAPE, type Kind, type Paints } from "./paint";
import { LANE, type Scene } from "./scene";
import { DRAWN, ticks, type Scale } from "./scale";

const BAR_TOP = 13;
/** Height of a lane's columns when calls are summed. */
const STACK = 20;

export interface Names {
  node(id: number): string;
}

export interface Highlight {
  call: number | null;
  hover: number | null;
}

export function drawLanes(
  c: CanvasRenderingContext2D,
  scene: Scene,
  scale: Scale,
  paints: Paints,
  names: Names,
  highlight: Highlight,
  now: number,
): void {
  const { colours } = paints;
  const height = Math.max(1, scene.lanes.rows.length) * LANE;
  const right = scale.left + scale.width;
  grid(c, scale, paints, height);
  const lane = new Map([...scene.lanes.of].map(([thread, row]) => [thread, row * LANE]));
  c.save();
  c.beginPath();
  c.rect(scale.left, 0, scale.width, height);
  c.clip();
  drawTraces(c, scene, scale, paints, lane);
  drawRuns(c, scene, scale, paints, lane, now);
  if (scene.single(scale)) drawCalls(c, scene, scale, paints, names, highlight, lane, now);
  else drawColumns(c, scene, scale, paints, lane, highlight, now);
  drawFolds(c, scale, paints, height);
  drawStops(c, scene, scale, paints, lane, highlight);
  c.restore();
  c.strokeStyle = colours.line2;
  c.lineWidth = 1;
  c.font = `11.5px ${paints.font}`;
  c.textBaseline = "middle";
  scene.lanes.rows.forEach(({ name }, i) => {
    const y = i * LANE;
    c.fillStyle = colours.fg;
    let length = name.length;
    while (length > 3 && c.measureText(middle(name, length)).width > scale.left - 12) length--;
    c.fillText(middle(name, length), 8, y + LANE / 2 + 1);
    c.beginPath();
    c.moveTo(0, y + LANE - 0.5);
    c.lineTo(right, y + LANE - 0.5);
    c.stroke();
  });
  c.beginPath();
  c.moveTo(scale.left - 0.5, 0);
  c.lineTo(scale.left - 0.5, height);
  c.stroke();
}

function grid(c: CanvasRenderingContext2D, scale: Scale, { colours }: Paints, height: number): void {
  c.strokeStyle = colours.line2;
  c.lineWidth = 1;
  c.beginPath();
  for (const tick of ticks(scale.view, scale.width, 70, scale.folds).major) {
    const x = Math.round(scale.x(tick.ns)) + 0.5;
    c.moveTo(x, 0);
    c.lineTo(x, height);
  }
  c.stroke();
}

function drawTraces(
  c: CanvasRenderingContext2D,
  scene: Scene,
  scale: Scale,
  paints: Paints,
  lane: Map<number, number>,
): void {
  for (const trace of scene.traces) {
    const y = lane.get(trace.thread);
    if (y === undefined) continue;
    const from = scale.x(trace.start_ns);
    const width = Math.max(1.5, scale.x(trace.start_ns + trace.duration_ns) - from);
    if (from + width < scale.left || from > scale.left + scale.width) continue;
    c.fillStyle = paints.fill.trace;
    c.fillRect(from, y + 4, width, SHAPE.trace.height);
  }
  for (const trace of scene.traces) {
    const y = lane.get(trace.thread);
    if (y === undefined) continue;
    const from = scale.x(trace.start_ns);
    const width = scale.x(trace.start_ns + trace.duration_ns) - from;
    if (width <= 24 || from + width < scale.left || from > scale.left + scale.width) continue;
    const room = Math.min(width, scale.x(firstInside(trace, scene.traces)) - from);
    const label = fit(c, `600 11px ${paints.font}`, room - 14, [
      `graph trace ${trace.ordinal} of ${trace.name}`,
      `graph trace ${trace.ordinal}`,
      `${trace.ordinal}`,
    ]);
    if (label) {
      const at = Math.max(from, scale.left) + 6;
      const wide = c.measureText(label).width + 8;
      if (at + wide > from + room) continue;
      c.fillStyle = paints.colours.bg;
      c.fillRect(at - 1, y + 6.5, wide, 13);
      c.fillStyle = paints.colours.fg;
      c.textBaseline = "middle";
      c.fillText(label, at + 3, y + 13.5);
    }
  }
}

/** When the first graph trace inside another begins, which hides it from there on; Infinity if there is none. */
export const firstInside = (outer: Trace, traces: readonly Trace[]): number =>
  traces.reduce((first, inner) => (inner.parent === outer.id ? Math.min(first, inner.start_ns) : first), Infinity);

function drawRuns(
  c: CanvasRenderingContext2D,
  scene: Scene,
  scale: Scale,
  paints: Paints,
  lane: Map<number, number>,
  now: number,
): void {
  const { runs } = scene;
  if (!runs) return;
  c.lineWidth = 1;
  c.strokeStyle = paints.colours.run;
  let lastColumn = -1;
  for (let i = 0; i < runs.length; i++) {
    const y = lane.get(runs.thread[i]!);
    if (y === undefined) continue;
    const end = runs.end[i]!;
    const from = scale.x(runs.start[i]!);
    const to = scale.x(Number.isNaN(end) ? now : end);
    if (to < scale.left || from > scale.left + scale.width) continue;
    if (to - from < 3) {
      // A row of runs narrower than a pixel is a texture, not a solid block.
      const column = Math.round(from / 2) * 2 + y * 1e5;
      if (column === lastColumn) continue;
      lastColumn = column;
      c.beginPath();
      c.moveTo(Math.round(from) + 0.5, y + 4);
      c.lineTo(Math.round(from) + 0.5, y + 22);
      c.stroke();
      continue;
    }
    c.strokeRect(Math.round(from) + 0.5, y + 4.5, Math.max(1, Math.round(to - from) - 1), 17);
    const name = runs.flags[i]! & 1 ? "backward" : "run";
    const label = fit(c, `11px ${paints.font}`, to - from - 10, [`${name} ${runs.id[i]!}`, String(runs.id[i]!)]);
    if (label && !scene.viewport?.runs_merged) {
      c.fillStyle = paints.colours.fg;
      c.textBaseline = "middle";
      c.fillText(label, Math.max(from, scale.left) + 6, y + 13.5);
    }
    if (runs.flags[i]! & 2) cross(c, Math.min(to, scale.left + scale.width) - 8, y + 13);
  }
}

function drawCalls(
  c: CanvasRenderingContext2D,
  scene: Scene,
  scale: Scale,
  paints: Paints,
  names: Names,
  highlight: Highlight,
  lane: Map<number, number>,
  now: number,
): void {
  const { calls } = scene;
  const right = scale.left + scale.width;
  const labels = new Map<number, { i: number; from: number; to: number }[]>();
  const marks: [number, number][] = [];
  let chosen: [number, number, number, number] | null = null;
  for (let i = 0; i < calls.length; i++) {
    const y = lane.get(calls.thread[i]!);
    if (y === undefined) continue;
    const start = scale.x(calls.start[i]!);
    const open = calls.end[i]!;
    const until = Number.isNaN(open) ? now : open;
    const end = Math.max(scale.x(until), start + 1);
    const from = scale.x(beginOf(calls, i));
    if (end < scale.left || from > right) continue;
    const top = y + BAR_TOP;
    const bar = (kind: Kind, low: number, high: number): void => {
      if (high <= low) return;
      c.fillStyle = paints.fill[kind];
      c.fillRect(low, top + SHAPE[kind].offset, Math.max(high - low, 0.75), SHAPE[kind].height);
    };
    bar("wait", from, start);
    const turn = Math.min(end, scale.x(turnOf(calls, i, until)));
    const solid = Math.max(turn, start + 1);
    bar(calls.flags[i]! & GRADIENT ? "gradient" : "held", start, solid);
    if (end > solid) {
      const late = Math.max(solid, Math.min(end, scale.x(lateOf(calls, i, until))));
      bar("released", solid, late);
      bar("wait", late, end);
      c.fillStyle = paints.colours.held;
      c.fillRect(end - 1, top, 1, SHAPE.held.height);
    }
    if (calls.flags[i]! & ERROR) marks.push([(start + end) / 2, top + 5.5]);
    if (calls.id[i] === highlight.call) chosen = [from, top, end - from, i];
    if (i === highlight.hover) ring(c, from - 1.5, top - 1.5, end - from + 3, 13, 1, paints);
    const list = labels.get(y);
    if (list) list.push({ i, from, to: end });
    else labels.set(y, [{ i, from, to: end }]);
  }
  for (const [x, y] of marks) cross(c, Math.min(Math.max(x, scale.left + 6), right - 6), y);
  if (chosen) ring(c, chosen[0] - 2.5, chosen[1] - 2, chosen[2] + 5, 14, 1.75, paints);
  drawLabels(c, scene, scale, paints, names, highlight, labels);
}

/** A fold: zigzag edges across the lanes. */
function drawFolds(c: CanvasRenderingContext2D, scale: Scale, { colours }: Paints, height: number): void {
  for (const gap of scale.gaps) {
    if (gap.to - gap.from < DRAWN) continue;
    c.fillStyle = colours.bg;
    c.fillRect(gap.from, 0, gap.to - gap.from, height);
    c.strokeStyle = colours.dim;
    c.lineWidth = 1;
    for (const x of [gap.from, gap.to]) {
      c.beginPath();
      c.moveTo(x, 0);
      for (let y = 0, side = 2.5; y < height; y += 5, side = -side) c.lineTo(x + side, y + 5);
      c.stroke();
    }
  }
}

/** Calls that are or were held: a yellow bar with its real length, hatched while it queued for its turn. */
function drawStops(c: CanvasRenderingContext2D, scene: Scene, scale: Scale, paints: Paints, lane: Map<number, number>, highlight: Highlight): void {
  const right = scale.left + scale.width;
  for (const stop of scene.stops) {
    const y = stop.thread === null ? undefined : lane.get(stop.thread);
    if (y === undefined) continue;
    const from = scale.x(stop.start_ns);
    const to = Math.max(stop.end_ns === null ? right : scale.x(stop.end_ns), from + 5);
    if (to < scale.left || from > right) continue;
    const top = y + BAR_TOP;
    c.fillStyle = paints.fill[stop.queued ? "queued" : "stop"];
    c.fillRect(from, top, to - from, SHAPE.stop.height);
    c.strokeStyle = paints.colours.fg;
    c.lineWidth = 1;
    c.strokeRect(from + 0.5, top + 0.5, to - from - 1, SHAPE.stop.height - 1);
    if (stop.call === highlight.call) ring(c, from - 2.5, top - 2, to - from + 5, 14, 1.75, paints);
    const word = stop.queued ? "queued" : stop.end_ns === null ? "stopped" : "stop";
    const long = stop.end_ns === null ? word : `${word} ${time(stop.end_ns - stop.start_ns)}`;
    const label = fit(c, `600 10px ${paints.font}`, Math.min(to, right) - Math.max(from, scale.left) - 6, [long, word]);
    if (label) {
      c.fillStyle = "#000";
      c.textBaseline = "middle";
      c.fillText(label, Math.max(from, scale.left) + 4, top + 6);
    }
  }
}

/** The label stands above its bar and may run on to the lane's next call; the selected one shows in full. */
function drawLabels(
  c: CanvasRenderingContext2D,
  scene: Scene,
  scale: Scale,
  paints: Paints,
  names: Names,
  highlight: Highlight,
  labels: Map<number, { i: number; from: number; to: number }[]>,
): void {
  const { calls } = scene;
  const right = scale.left + scale.width;
  c.textBaseline = "alphabetic";
  for (const [y, list] of labels) {
    list.sort((a, b) => a.from - b.from);
    const kept = list.find((item) => calls.id[item.i] === highlight.call);
    let reserved: [number, number] | null = null;
    if (kept) {
      const label = name(scene, names, kept.i, true);
      c.font = `600 10px ${paints.font}`;
      const wide = c.measureText(label).width;
      const x = Math.min(Math.max(kept.from, scale.left + 2), right - wide - 2);
      reserved = [x - 4, x + wide + 4];
      c.fillStyle = paints.colours.fg;
      c.fillText(label, x, y + 9.5);
    }
    c.font = `10px ${paints.font}`;
    c.fillStyle = paints.colours.dim;
    for (let k = 0; k < list.length; k++) {
      const item = list[k]!;
      if (item === kept) continue;
      let x = Math.max(item.from, scale.left + 2);
      let room = Math.min(list[k + 1]?.from ?? right, right) - x - 4;
      if (reserved && x < reserved[1] && x + room > reserved[0]) {
        if (x < reserved[0]) room = reserved[0] - x;
        else {
          room -= reserved[1] - x;
          x = reserved[1];
        }
      }
      if (room < 6) continue;
      const short = name(scene, names, item.i, false);
      const label = fit(c, `10px ${paints.font}`, room, [name(scene, names, item.i, true), short, short.slice(0, 1)]);
      if (label) c.fillText(label, x, y + 9.5);
    }
  }
}

function name(scene: Scene, names: Names, i: number, long: boolean): string {
  const { calls } = scene;
  const label = `${calls.flags[i]! & GRADIENT ? "∇ " : ""}${middle(names.node(calls.node[i]!), 24)}`;
  return long ? `${label} #${calls.id[i]!}` : label;
}

function ring(
  c: CanvasRenderingContext2D,
  x: number,
  y: number,
  width: number,
  height: number,
  line: number,
  { colours }: Paints,
): void {
  c.strokeStyle = colours.fg;
  c.lineWidth = line;
  c.strokeRect(x, y, Math.max(width, 4), height);
}

/** Calls narrower than a pixel: columns, stacked held, gradient, released, wait from the bottom. */
function drawColumns(
  c: CanvasRenderingContext2D,
  scene: Scene,
  scale: Scale,
  paints: Paints,
  lane: Map<number, number>,
  highlight: Highlight,
  now: number,
): void {
  const sums = scene.columns(scale);
  const { width } = sums;
  const perColumn = (sums.end - sums.start) / width;
  const columnPx = (perColumn / (scale.view.end - scale.view.start)) * scale.width;
  const first = Math.max(0, Math.floor((scale.view.start - sums.start) / perColumn));
  const last = Math.min(width - 1, Math.ceil((scale.view.end - sums.start) / perColumn));
  // Sky blue alone is hard to see on white: it keeps its stripes.
  const fills = PARTS.map((part) => (part === "released" ? paints.fill.released : paints.colours[part]));
  const drawn = new Set<number>();
  for (const [thread, at] of sums.lanes) {
    const y = lane.get(thread);
    if (y === undefined || drawn.has(at)) continue;
    drawn.add(at);
    const bottom = y + 3 + STACK;
    const offsets = new Float32Array(last - first + 1);
    PARTS.forEach((_, part) => {
      c.fillStyle = fills[part]!;
      c.beginPath();
      const base = (at * PARTS.length + part) * width;
      for (let column = first; column <= last; column++) {
        const share = sums.values[base + column]!;
        if (share <= 0) continue;
        const under = offsets[column - first]!;
        // A lane's stack never grows over its height: waits of queued calls may overlap.
        const height = Math.min(Math.max(share * STACK, 0.5), STACK - under);
        if (height <= 0) continue;
        const x = scale.place(sums.start + column * perColumn);
        c.rect(x, bottom - under - height, Math.max(columnPx, 1) + 0.25, height);
        offsets[column - first] = under + height;
      }
      c.fill();
    });
  }
  const { calls } = scene;
  const marked = new Set<number>();
  for (let i = 0; i < calls.length; i++) {
    const y = lane.get(calls.thread[i]!);
    if (y === undefined) continue;
    const x = scale.x(calls.start[i]!);
    const selected = calls.id[i] === highlight.call;
    if (!(calls.flags[i]! & ERROR) && !selected) continue;
    if (x < scale.left - 6 || x > scale.left + scale.width + 6) continue;
    const slot = Math.round(x / 6) + y * 1e5;
    if (calls.flags[i]! & ERROR && !marked.has(slot)) {
      marked.add(slot);
      cross(c, x, y + 13);
    }
    if (selected) {
      const end = calls.end[i]!;
      ring(c, x - 3, y + 1.5, Math.max(6, scale.x(Number.isNaN(end) ? now : end) - x + 6), LANE - 4, 1.75, paints);
    }
  }
}

function fit(c: CanvasRenderingContext2D, font: string, room: number, texts: string[]): string | null {
  c.font = font;
  for (const text of texts) if (text && c.measureText(text).width <= room) return text;
  return null;
}

export function drawAxis(c: CanvasRenderingContext2D, scale: Scale, paints: Paints, height: number): void {
  const { colours } = paints;
  const { major, minor } = ticks(scale.view, scale.width, 70, scale.folds);
  const right = scale.left + scale.width;
  c.font = `11px ${paints.font}`;
  c.textBaseline = "middle";
  c.fillStyle = colours.dim;
  c.fillText("time", 8, height / 2);
  c.strokeStyle = colours.line2;
  c.lineWidth = 1;
  c.beginPath();
  for (const [from, to] of scale.folds.between(scale.view)) {
    for (let ns = Math.ceil(from / minor) * minor; ns <= to; ns += minor) {
      const x = Math.round(scale.x(ns)) + 0.5;
      c.moveTo(x, height - 4);
      c.lineTo(x, height);
    }
  }
  for (const tick of major) {
    const x = Math.round(scale.x(tick.ns)) + 0.5;
    c.moveTo(x, 2);
    c.lineTo(x, height);
  }
  c.stroke();
  for (const tick of major) {
    const x = scale.x(tick.ns) + 4;
    const end = x + c.measureText(tick.label).width;
    if (end <= right + 2 && !scale.gaps.some((gap) => x < gap.to && end > gap.from)) c.fillText(tick.label, x, height / 2);
  }
  for (const gap of scale.gaps) {
    const wide = gap.to - gap.from;
    const label = fit(c, `11px ${paints.font}`, wide - 2, ["folded"]) ?? "//";
    c.fillText(label, (gap.from + gap.to - c.measureText(label).width) / 2, height / 2);
  }
  c.beginPath();
  c.moveTo(0, height - 0.5);
  c.lineTo(right, height - 0.5);
  c.strokeStyle = colours.line;
  c.stroke();
}

export function drawMinimap(
  c: CanvasRenderingContext2D,
  whole: Scale,
  seen: Scale,
  paints: Paints,
  height: number,
  area: ArrayLike<number>,
  errors: ArrayLike<number>,
  scene: Scene,
  measured: boolean,
): void {
  const { colours } = paints;
  const bottom = height - 3;
  c.font = `11px ${paints.font}`;
  c.textBaseline = "middle";
  c.fillStyle = colours.dim;
  c.fillText("overview", 8, height / 2);
  c.fillStyle = colours.bg2;
  c.fillRect(whole.left, 2, whole.width, bottom - 2);
  let highest = 1;
  for (let i = 0; i < area.length; i++) highest = Math.max(highest, area[i]!);
  c.fillStyle = measured ? colours.wait : colours.held;
  const wide = whole.width / Math.max(1, area.length);
  const perColumn = (whole.view.end - whole.view.start) / Math.max(1, area.length);
  for (let i = 0; i < area.length; i++) {
    const tall = (area[i]! / highest) * (bottom - 4);
    if (tall > 0) c.fillRect(whole.place(whole.view.start + i * perColumn), bottom - tall, wide + 0.3, tall);
  }
  c.fillStyle = paints.fill.trace;
  for (const trace of scene.traces) {
    const from = whole.x(trace.start_ns);
    c.fillRect(from, 2, Math.max(1.5, whole.x(trace.start_ns + trace.duration_ns) - from), bottom - 2);
  }
  for (const stop of scene.stops) {
    if (stop.queued) continue;
    const low = whole.x(stop.start_ns);
    const high = stop.end_ns === null ? whole.left + whole.width : whole.x(stop.end_ns);
    c.fillStyle = colours.stop;
    c.fillRect(low, 2, Math.max(3, high - low), bottom - 2);
    c.strokeStyle = colours.fg;
    c.lineWidth = 1;
    c.strokeRect(low - 0.5, 2.5, Math.max(3, high - low) + 1, bottom - 3);
  }
  const from = Math.max(whole.left, whole.place(seen.view.start));
  const to = Math.min(whole.left + whole.width, Math.max(whole.place(seen.view.end), from + 8));
  c.save();
  c.globalAlpha = 0.45;
  c.fillStyle = colours.bg;
  c.fillRect(whole.left, 1, from - whole.left, height - 3);
  c.fillRect(to, 1, whole.left + whole.width - to, height - 3);
  c.restore();
  for (let i = 0; i < errors.length; i++) {
    const x = whole.x(errors[i]!);
    c.strokeStyle = colours.fg;
    c.lineWidth = 1.5;
    c.beginPath();
    c.moveTo(x - 3, 4);
    c.lineTo(x + 3, 10);
    c.moveTo(x + 3, 4);
    c.lineTo(x - 3, 10);
    c.stroke();
  }
  c.strokeStyle = colours.fg;
  c.lineWidth = 1.75;
  c.strokeRect(from - 1, 1, to - from + 2, height - 3);
}
