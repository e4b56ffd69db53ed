// Brushes of the timeline: one colour a meaning, with a pattern and a height beside it, so that greyscale reads too.
import type { Colours, Token } from "../theme";

export type Kind = "trace" | "held" | "gradient" | "released" | "wait" | "stop" | "queued" | "elsewhere";

/** Height in px and offset from the bar's top: held > released > wait. */
export const SHAPE: Record<Kind, { height: number; offset: number }> = {
  trace: { height: 18, offset: -5 },
  held: { height: 11, offset: 0 },
  gradient: { height: 11, offset: 0 },
  released: { height: 7, offset: 2 },
  wait: { height: 5, offset: 3 },
  stop: { height: 11, offset: 0 },
  queued: { height: 11, offset: 0 },
  elsewhere: { height: 11, offset: 0 },
};

export interface Paints {
  fill: Record<Kind, CanvasPattern | string>;
  colours: Colours;
  font: string;
}

export function makePaints(context: CanvasRenderingContext2D, colours: Colours, font: string, scale: number): Paints {
  const pattern = (token: Token, size: number, mark: (c: CanvasRenderingContext2D, s: number) => void) => {
    const tile = document.createElement("canvas");
    const pixels = Math.max(2, Math.round(size * scale));
    tile.width = tile.height = pixels;
    const c = tile.getContext("2d");
    if (!c) return colours[token];
    c.fillStyle = colours[token];
    c.fillRect(0, 0, pixels, pixels);
    mark(c, pixels);
    const made = context.createPattern(tile, "repeat");
    made?.setTransform(new DOMMatrix().scale(1 / scale, 1 / scale));
    return made ?? colours[token];
  };
  return {
    colours,
    font,
    fill: {
      trace: pattern("trace", 6, (c, s) => {
        c.strokeStyle = "rgba(0,0,0,.45)";
        c.lineWidth = s / 6;
        c.beginPath();
        for (const shift of [-s, 0, s]) {
          c.moveTo(shift, s);
          c.lineTo(shift + s, 0);
        }
        c.stroke();
      }),
      held: colours.held,
      gradient: pattern("gradient", 3, (c, s) => {
        c.fillStyle = "rgba(255,255,255,.55)";
        c.fillRect(0, 0, s / 3, s);
      }),
      released: pattern("released", 3, (c, s) => {
        c.fillStyle = "rgba(0,0,0,.36)";
        c.fillRect(0, 0, s, s / 3);
      }),
      wait: pattern("wait", 3, (c, s) => {
        c.fillStyle = "rgba(255,255,255,.8)";
        c.fillRect(s / 3, s / 3, s / 3, s / 3);
      }),
      elsewhere: pattern("bg", 4, (c, s) => {
        c.fillStyle = colours.dim;
        c.fillRect(0, 0, s / 2, s / 2);
        c.fillRect(s / 2, s / 2, s / 2, s / 2);
      }),
      stop: colours.stop,
      queued: pattern("stop", 6, (c, s) => {
        c.strokeStyle = "#fff";
        c.lineWidth = s / 3;
        c.beginPath();
        for (const shift of [-s, 0, s]) {
          c.moveTo(shift, s);
          c.lineTo(shift + s, 0);
        }
        c.stroke();
      }),
    },
  };
}

/** A small sample of a kind, for legends and tooltips. */
export function swatch(kind: Kind | "run" | "error" | "body"): HTMLSpanElement {
  const element = document.createElement("span");
  element.className = `swatch k-${kind}`;
  element.setAttribute("aria-hidden", "true");
  return element;
}

/** A black cross on a white box, the same in both themes. */
export function cross(c: CanvasRenderingContext2D, x: number, y: number, size = 11): void {
  const half = size / 2;
  c.fillStyle = "#fff";
  c.fillRect(x - half, y - half, size, size);
  c.strokeStyle = "#000";
  c.lineWidth = 1;
  c.strokeRect(x - half + 0.5, y - half + 0.5, size - 1, size - 1);
  c.lineWidth = 1.75;
  c.beginPath();
  const arm = half - 2.75;
  c.moveTo(x - arm, y - arm);
  c.lineTo(x + arm, y + arm);
  c.moveTo(x + arm, y - arm);
  c.lineTo(x - arm, y + arm);
  c.stroke();
}
