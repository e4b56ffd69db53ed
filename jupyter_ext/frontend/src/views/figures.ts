// Small figures: a histogram as SVG bars, kept elements as a pixelated picture.
import { bytesOf, type Picture, type Trend } from "../data/protocol";
import { h, svg } from "../dom";
import { sig3 } from "../format";

const WIDTH = 56;
const HEIGHT = 15;

export function histogram(counts: readonly number[], low: number | null, high: number | null): Element | null {
  if (counts.length < 2) return null;
  const largest = Math.max(1, ...counts);
  const wide = WIDTH / counts.length;
  const words = `histogram from ${sig3(low)} to ${sig3(high)}, ${counts.length} bins, tallest ${largest}`;
  return svg(
    "svg",
    { class: "hist", width: WIDTH, height: HEIGHT, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": words },
    svg("title", {}, words),
    ...counts.map((count, i) => {
      // A bin that is not empty is seen, however small.
      const tall = count ? Math.max(1, (count / largest) * (HEIGHT - 2)) : 0;
      return svg("rect", { x: (i * wide).toFixed(2), y: (HEIGHT - 1 - tall).toFixed(2), width: Math.max(0.6, wide - 0.6).toFixed(2), height: tall.toFixed(2) });
    }),
    svg("line", { class: "axis", x1: 0, x2: WIDTH, y1: HEIGHT - 0.5, y2: HEIGHT - 0.5 }),
  );
}

/** A scalar over the calls of its node; `current` is where this call stands. */
export function sparkline(trend: Trend, call: number, value: number | null): Element {
  const low = Math.min(...trend.values, value ?? Infinity);
  const high = Math.max(...trend.values, value ?? -Infinity);
  const first = trend.ids[0]!;
  const span = Math.max(1, trend.ids[trend.ids.length - 1]! - first);
  const x = (id: number): string => (1 + ((id - first) / span) * (WIDTH - 2)).toFixed(1);
  const y = (number: number): string => (HEIGHT - 2 - ((number - low) / (high - low || 1)) * (HEIGHT - 4)).toFixed(1);
  const words = `over ${trend.ids.length} calls, #${first} to #${trend.ids[trend.ids.length - 1]!}: ${sig3(low)} to ${sig3(high)}`;
  return svg(
    "svg",
    { class: "hist spark", width: WIDTH, height: HEIGHT, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": words },
    svg("title", {}, words),
    svg("polyline", { points: trend.ids.map((id, i) => `${x(id)},${y(trend.values[i]!)}`).join(" ") }),
    value !== null && svg("circle", { cx: x(Math.min(Math.max(call, first), first + span)), cy: y(value), r: 2 }),
  );
}

/** What the lowest and the highest point of a line stand for. */
export function scaleOf(trend: Trend): string {
  const [low, high] = [sig3(Math.min(...trend.values)), sig3(Math.max(...trend.values))];
  return `${low === high ? low : `${low} to ${high}`}, ${trend.ids.length} calls`;
}

/** A picture; `open` makes it a button that shows it large. */
export function figure(picture: Picture, caption: string, open?: () => void): HTMLElement {
  const canvas = h("canvas", { width: picture.width, height: picture.height, tabindex: 0, role: open ? "button" : "img", class: open ? "opens" : "", "data-focus": `figure-${caption}` });
  if (open) {
    canvas.addEventListener("click", open);
    canvas.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      open();
    });
  }
  const range = `${caption}: ${picture.width} × ${picture.height}, ${sig3(picture.low)} to ${sig3(picture.high)}`;
  canvas.title = range;
  canvas.setAttribute("aria-label", range);
  const c = canvas.getContext("2d");
  if (c) c.putImageData(new ImageData(pixels(picture), picture.width, picture.height), 0, 0);
  return h("figure", {}, canvas, h("figcaption", {}, caption));
}

/** One RGBA pixel an element; diverging maps are white at 0. */
export function pixels(picture: Picture): Uint8ClampedArray<ArrayBuffer> {
  const data = bytesOf(picture.data);
  const count = picture.width * picture.height;
  const rgba = new Uint8ClampedArray(count * 4);
  for (let i = 0; i < count; i++) {
    const at = i * 4;
    if (picture.kind === "rgb") {
      rgba[at] = data[i * 3]!;
      rgba[at + 1] = data[i * 3 + 1]!;
      rgba[at + 2] = data[i * 3 + 2]!;
    } else if (picture.kind === "gray") {
      rgba[at] = rgba[at + 1] = rgba[at + 2] = data[i]!;
    } else {
      // Okabe-Ito blue below zero, vermilion above.
      const x = (data[i]! - 127.5) / 127.5;
      const strength = Math.min(1, Math.abs(x));
      const [r, g, b] = x < 0 ? [0, 114, 178] : [213, 94, 0];
      rgba[at] = 255 + (r - 255) * strength;
      rgba[at + 1] = 255 + (g - 255) * strength;
      rgba[at + 2] = 255 + (b - 255) * strength;
    }
    rgba[at + 3] = 255;
  }
  return rgba;
}
