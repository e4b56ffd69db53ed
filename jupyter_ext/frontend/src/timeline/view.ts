// The timeline: canvas lanes with axis and minimap, zoom, pan, box select and hover. Its text equivalent is the calls table.
import { beginOf, ERROR, GRADIENT, INTERRUPTED } from "../data/columns";
import type { CallDetail } from "../data/protocol";
import type { DataSource } from "../data/source";
import { clear, h, text } from "../dom";
import { int, plural, time, waited } from "../format";
import { middleOf, type State } from "../state";
import { readTheme, watchTheme } from "../theme";
import { drawAxis, drawLanes, drawMinimap } from "./draw";
import { makePaints, swatch, type Paints } from "./paint";
import { sameNames } from "./lanes";
import { COLUMN_PX, LANE, Scene } from "./scene";
import { makeScale, type Scale } from "./scale";

const LEFT = 70;
const RIGHT = 8;
const MINIMAP = 24;
const AXIS = 20;
/** How long the pointer rests on a call before it is asked for the rest. */
const LINGER_MS = 120;
const MOST_NAMED = 20;

export class Timeline {
  readonly element: HTMLElement;
  private readonly head = h("h3", {}, "Timeline");
  private readonly note = h("small.note", { "aria-live": "polite" });
  private readonly legend = h("span.legend");
  private readonly minimap = h("canvas.minimap", { "aria-hidden": "true" });
  private readonly axis = h("canvas.axis", { "aria-hidden": "true" });
  private readonly lanes = h("canvas.lanes", { tabindex: 0, role: "img", "data-focus": "timeline" });
  private readonly scroller = h("div.lanebox", {}, this.lanes);
  private readonly box = h("div.box", { hidden: true });
  private readonly empty = h("p.empty");
  private readonly arrow = h("button.btn.sm.arrow", { type: "button", hidden: true, title: "The selected call is out of sight: go there", "data-focus": "arrow" });
  private readonly tip = h("div.tip", { hidden: true, role: "tooltip" });
  private readonly scene = new Scene();
  private paints: Paints | null = null;
  private width = 0;
  private frame = 0;
  private hover: number | null = null;
  private asked: { start: number; end: number; width: number } | null = null;
  private answered: { start: number; end: number; width: number; revision: number } | null = null;
  private timer = 0;
  private slow = 0;

  constructor(
    private readonly state: State,
    private readonly source: DataSource,
    private readonly root: HTMLElement,
    private readonly signal: AbortSignal,
  ) {
    this.element = h(
      "section.tl",
      { "aria-label": "Timeline" },
      h("div.sh", {}, this.head, this.note, this.legend),
      h("div.tlw", {}, this.minimap, this.axis, this.scroller, this.box, this.empty, this.arrow),
    );
    this.arrow.addEventListener("click", () => this.fitSelection(), { signal });
    root.append(this.tip);
    const observer = new ResizeObserver(() => this.resize());
    observer.observe(this.element);
    signal.addEventListener("abort", () => {
      observer.disconnect();
      cancelAnimationFrame(this.frame);
      window.clearTimeout(this.timer);
      window.clearTimeout(this.slow);
    });
    watchTheme(() => this.retheme(), signal);
    state.on("overview", () => this.refresh(), signal);
    state.on("view", () => this.moved(), signal);
    state.on("selection", () => this.draw(), signal);
    this.listen();
  }

  /** Draws at the next frame. */
  draw(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  /** Draws now, with what is there; for benchmarks. */
  paintNow(): void {
    this.paint();
  }

  /** Zooms about a place; about the part of the selected call that is in sight where none is given, else the middle. */
  zoom(factor: number, at = this.anchor()): void {
    const { start, end } = this.state.view;
    const centre = start + (end - start) * at;
    this.state.viewTouched = true;
    this.state.look(centre - (centre - start) * factor, centre + (end - centre) * factor);
  }

  private anchor(): number {
    const { span, selection, view, folds } = this.state;
    return span && span.call === selection.call ? middleOf(view, folds.at(span.start), folds.at(span.end)) : 0.5;
  }

  pan(share: number): void {
    const { start, end } = this.state.view;
    const by = (end - start) * share;
    this.state.viewTouched = true;
    this.state.look(start + by, end + by);
  }

  /** Shows a stretch of time with some room about it. */
  fit(from: number, to: number): void {
    const { folds } = this.state;
    const [start, end] = [folds.at(from), folds.at(to)];
    const room = Math.max(8e6, (end - start) * 0.5);
    this.state.viewTouched = true;
    this.state.look(start - room, end + room);
  }

  private retheme(): void {
    const theme = readTheme(this.root);
    const context = this.lanes.getContext("2d");
    if (context) this.paints = makePaints(context, theme.colours, theme.font, devicePixelRatio || 1);
    this.state.emit("theme");
    this.draw();
  }

  private resize(): void {
    const width = Math.floor(this.element.clientWidth);
    if (!width || width === this.width) return;
    this.width = width;
    this.retheme();
    this.moved();
  }

  private moved(): void {
    this.draw();
    this.busy(true);
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.fetch(), this.answered ? 60 : 0);
  }

  /** Says whether the picture is still to be made for the view. */
  private busy(is: boolean): void {
    this.lanes.setAttribute("aria-busy", String(is));
  }

  private refresh(): void {
    const overview = this.state.overview;
    if (!overview) return;
    const { start: first, end: last } = this.state.whole();
    if (!this.state.viewTouched) this.state.look(first, last);
    else if (this.follows()) {
      const { start, end } = this.state.view;
      this.state.look(start + last - end, last);
    }
    this.fetch();
  }

  /** A view that touches the right edge of what was there follows what comes. */
  private follows(): boolean {
    const before = this.answered?.end;
    return before !== undefined && this.lastEnd !== null && this.state.view.end >= this.lastEnd;
  }
  private lastEnd: number | null = null;

  private pixels(): number {
    return Math.max(1, Math.floor((this.width - LEFT - RIGHT) / COLUMN_PX));
  }

  /** Whether what was answered last shows the view as it is now. */
  private shown(): boolean {
    const got = this.answered;
    if (!got || got.revision !== this.state.overview?.revision) return false;
    const { start, end } = this.state.view;
    const inside = start >= got.start && end <= got.end;
    const sharp = (got.end - got.start) / got.width <= ((end - start) / this.pixels()) * 1.3;
    return inside && (sharp || this.scene.viewport?.mode === "calls");
  }

  private fetch(): void {
    const overview = this.state.overview;
    if (!overview || !this.width || this.signal.aborted) return;
    if (this.asked) return; // one question at a time: the next one follows the answer
    const shown = this.shown();
    this.busy(!shown);
    if (shown) return;
    const { start, end } = this.state.view;
    const span = end - start;
    const asking = { start: start - span * 0.25, end: end + span * 0.25, width: Math.ceil(this.pixels() * 1.5) };
    const { folds } = this.state;
    this.asked = asking;
    const revision = overview.revision;
    window.clearTimeout(this.slow);
    this.slow = window.setTimeout(() => text(this.note, "reading…"), 300);
    let failed = false;
    this.source
      .ask("timeline", { start_ns: folds.real(asking.start), end_ns: folds.real(asking.end), width: asking.width })
      .then(({ result, arrays }) => {
        if (this.signal.aborted) return;
        this.scene.folds = folds;
        this.scene.stops = overview.stops ?? [];
        this.scene.take(result, arrays, overview.threads);
        const named = this.state.lanes;
        this.state.lanes = this.scene.lanes;
        if (!sameNames(named, this.scene.lanes)) this.state.emit("lanes");
        this.answered = { ...asking, revision };
        this.lastEnd = folds.at(overview.end_ns);
        this.hover = null;
        text(this.note, "");
        this.draw();
      })
      .catch((error: Error) => {
        failed = true;
        text(this.note, error.message);
      })
      .finally(() => {
        window.clearTimeout(this.slow);
        this.asked = null;
        this.busy(false);
        if (this.signal.aborted || !this.answered) return;
        // A question that failed is not asked again as it was.
        const { start: from, end: to } = this.state.view;
        const other = from < asking.start || to > asking.end || this.state.overview?.revision !== revision;
        if (failed ? other : !this.shown()) this.moved();
      });
  }

  private scale(): Scale {
    return makeScale(this.state.view, LEFT, Math.max(10, this.width - LEFT - RIGHT), this.state.folds);
  }

  private paint(): void {
    const { overview } = this.state;
    if (!overview || !this.width) return;
    if (!this.paints) this.retheme();
    const paints = this.paints;
    if (!paints) return;
    const scale = this.scale();
    const height = Math.max(1, this.scene.lanes.rows.length) * LANE;
    const names = { node: (id: number) => this.state.nodeName(id) };
    const highlight = { call: this.state.selection.call, hover: this.hover };
    this.on(this.lanes, height, (c) => drawLanes(c, this.scene, scale, paints, names, highlight, overview.end_ns));
    this.scene.stops = overview.stops ?? [];
    this.on(this.axis, AXIS, (c) => drawAxis(c, scale, paints, AXIS));
    this.on(this.minimap, MINIMAP, (c) => {
      const whole = this.overviewScale(scale.left, scale.width);
      const measured = overview.gil !== null;
      drawMinimap(c, whole, scale, paints, MINIMAP, this.state.waiting, this.state.errors, this.scene, measured);
    });
    const nothing = overview.calls === 0;
    this.empty.hidden = !nothing;
    if (nothing) text(this.empty, this.state.stopped ? `${this.state.stopped} is stopped: its lane is being drawn.` : overview?.state === "recording" ? "No calls yet: a thread gets its lane with its first call." : "No calls.");
    this.lanes.setAttribute("aria-label", this.words());
    this.paintArrow();
    this.paintLegend();
  }

  private overviewScale(left = LEFT, width = this.width - LEFT - RIGHT): Scale {
    return makeScale(this.state.whole(), left, width, this.state.folds, 4);
  }

  private on(canvas: HTMLCanvasElement, height: number, draw: (c: CanvasRenderingContext2D) => void): void {
    const ratio = devicePixelRatio || 1;
    const w = Math.round(this.width * ratio);
    const tall = Math.round(height * ratio);
    if (canvas.width !== w || canvas.height !== tall) {
      canvas.width = w;
      canvas.height = tall;
      canvas.style.width = `${this.width}px`;
      canvas.style.height = `${height}px`;
    }
    const c = canvas.getContext("2d");
    if (!c) return;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, this.width, height);
    draw(c);
  }

  private words(): string {
    const { view: folded, folds, overview } = this.state;
    const view = { start: folds.real(folded.start), end: folds.real(folded.end) };
    const calls = this.scene.viewport?.calls ?? 0;
    const lanes = this.scene.lanes.rows;
    const left = folds.list.reduce((sum, [start, end]) => sum + end - start, 0);
    return (
      `Timeline from ${time(view.start)} to ${time(view.end)}, ${plural(lanes.length, "lane")}${lanes.length && lanes.length <= MOST_NAMED ? ` (${lanes.map((lane) => lane.name).join(", ")})` : ""}, ` +
      `${plural(calls, "call")} of ${int(overview?.calls ?? 0)}.${left ? ` The axis leaves out ${time(left)} at stops.` : ""} The table of calls lists the same calls.`
    );
  }

  /** Where the selected call is when it is out of sight; a click goes there. */
  private paintArrow(): void {
    const { span, selection, view } = this.state;
    const known = span && span.call === selection.call ? span : null;
    const { folds } = this.state;
    const side = !known ? 0 : folds.at(known.end) < view.start ? -1 : folds.at(known.start) > view.end ? 1 : 0;
    this.arrow.hidden = side === 0;
    if (!side) return;
    text(this.arrow, side < 0 ? `◀ #${selection.call}` : `#${selection.call} ▶`);
    this.arrow.style.left = side < 0 ? `${LEFT + 4}px` : "auto";
    this.arrow.style.right = side < 0 ? "auto" : `${RIGHT + 4}px`;
  }

  private legendOf = "";
  private paintLegend(): void {
    const overview = this.state.overview;
    const measured = overview?.gil !== null;
    const gradients = this.state.ledger.rows.some((row) => row.call_kind === "gradient");
    const split = overview?.split ?? false;
    const stopped = (overview?.stops?.length ?? 0) > 0;
    const key = `${measured}${gradients}${split}${stopped}`;
    if (key === this.legendOf) return;
    this.legendOf = key;
    const item = (kind: Parameters<typeof swatch>[0], name: string, title = ""): HTMLElement =>
      h("span", { title }, swatch(kind), name);
    clear(
      this.legend,
      item("trace", "graph trace", "TensorFlow builds a graph: the Python of the tf.function runs"),
      item("run", "run", "one execution of a tf.function that Python started"),
      ...(measured
        ? [
            item("wait", "wait", "the call was ready but did not hold the GIL"),
            ...(split
              ? [
                  item("held", "held", "time in the body that held the GIL; the order inside a body is not recorded"),
                  item("released", "released", "time in the body with the GIL let go; the order inside a body is not recorded"),
                ]
              : [item("held", "body", "time in the body; how much of it held the GIL was not measured")]),
          ]
        : [item("held", "body", "time in the body; the GIL was not measured")]),
      gradients && item("gradient", "∇ gradient", "a gradient call"),
      item("error", "error", "an exception left the body"),
      stopped && item("stop", "stop", "held at a breakpoint: no part of any time; where nothing else ran, the axis is folded"),
    );
  }

  // ---- pointer

  private listen(): void {
    const { signal, lanes, minimap, axis } = this;
    const share = (event: MouseEvent): number => (this.local(event) - LEFT) / Math.max(1, this.width - LEFT - RIGHT);
    lanes.addEventListener(
      "wheel",
      (event) => {
        // A notebook must scroll past the panel: the wheel is the timeline's with its focus or with Ctrl only.
        const focused = (lanes.getRootNode() as Document).activeElement === lanes;
        if (!event.ctrlKey && !focused) return;
        event.preventDefault();
        if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(event.deltaX / this.width);
        else this.zoom(1.0015 ** event.deltaY, share(event));
      },
      { passive: false, signal },
    );
    this.drag(lanes, (from, event) => (event.shiftKey ? this.select(from, event) : this.grab()), (event) => this.click(event));
    this.drag(axis, (from) => this.select(from));
    this.drag(minimap, (from) => this.brush(from), (event) => this.jump(event));
    lanes.addEventListener("pointermove", (event) => this.hovered(event), { signal });
    lanes.addEventListener("pointerleave", () => this.unhover(), { signal });
    lanes.addEventListener("dblclick", () => this.fitSelection(), { signal });
  }

  /** Pixels from the left edge of the timeline. */
  private local(event: MouseEvent): number {
    return event.clientX - this.lanes.getBoundingClientRect().left;
  }

  private drag(
    target: HTMLElement,
    begin: (x: number, event: PointerEvent) => (x: number, done: boolean) => void,
    click?: (event: PointerEvent) => void,
  ): void {
    target.addEventListener(
      "pointerdown",
      (down) => {
        if (down.button !== 0) return;
        const from = this.local(down);
        let move: ((x: number, done: boolean) => void) | null = null;
        const ended = new AbortController();
        const options = { signal: AbortSignal.any([ended.signal, this.signal]) };
        target.setPointerCapture(down.pointerId);
        target.addEventListener(
          "pointermove",
          (event) => {
            if (!move && Math.abs(this.local(event) - from) < 4) return;
            this.unhover();
            move ??= begin(from, down);
            move(this.local(event), false);
          },
          options,
        );
        const up = (event: PointerEvent): void => {
          ended.abort();
          if (move) move(this.local(event), true);
          else if (event.type === "pointerup") click?.(event);
        };
        target.addEventListener("pointerup", up, options);
        target.addEventListener("pointercancel", up, options);
      },
      { signal: this.signal },
    );
  }

  private grab(): (x: number) => void {
    const { start, end } = this.state.view;
    let last: number | null = null;
    const perPixel = (end - start) / Math.max(1, this.width - LEFT - RIGHT);
    let first: number | null = null;
    return (x) => {
      first ??= last ?? x;
      last = x;
      this.state.viewTouched = true;
      this.state.look(start - (x - first) * perPixel, end - (x - first) * perPixel);
    };
  }

  private select(from: number, down?: PointerEvent): (x: number, done: boolean) => void {
    const scale = this.scale();
    const top = MINIMAP;
    void down;
    return (x, done) => {
      const low = Math.max(LEFT, Math.min(from, x));
      const high = Math.min(this.width - RIGHT, Math.max(from, x));
      Object.assign(this.box.style, { left: `${low}px`, width: `${Math.max(1, high - low)}px`, top: `${top}px` });
      this.box.hidden = done;
      if (done && high - low > 4) {
        this.state.viewTouched = true;
        this.state.look(scale.at(low), scale.at(high));
      }
    };
  }

  private brush(from: number): (x: number) => void {
    const whole = this.overviewScale();
    const { start, end } = this.state.view;
    const inside = from >= whole.place(start) - 4 && from <= whole.place(end) + 4 && end - start < (whole.view.end - whole.view.start) * 0.98;
    return (x) => {
      this.state.viewTouched = true;
      if (inside) {
        const by = whole.at(x) - whole.at(from);
        this.state.look(start + by, end + by);
      } else this.state.look(whole.at(Math.min(from, x)), whole.at(Math.max(from, x)));
    };
  }

  private jump(event: PointerEvent): void {
    if (!this.state.overview) return;
    const { start, end } = this.state.view;
    const centre = this.overviewScale().at(this.local(event));
    this.state.viewTouched = true;
    this.state.look(centre - (end - start) / 2, centre + (end - start) / 2);
  }

  private at(event: MouseEvent): { lane: number; x: number; y: number } | null {
    const bounds = this.lanes.getBoundingClientRect();
    const y = event.clientY - bounds.top;
    const lane = Math.floor(y / LANE);
    const x = event.clientX - bounds.left;
    return !this.scene.lanes.rows[lane] || x < LEFT ? null : { lane, x, y };
  }

  private click(event: PointerEvent): void {
    this.lanes.focus({ preventScroll: true });
    const place = this.at(event);
    if (!place) return;
    const scale = this.scale();
    const hit = this.scene.hit(scale, place.lane, place.x, this.state.overview?.end_ns ?? 0);
    if (hit !== null && (this.scene.single(scale) || this.scene.calls.flags[hit]! & ERROR)) {
      const { calls } = this.scene;
      const row = this.state.rowOfNode(calls.node[hit]!, (calls.flags[hit]! & GRADIENT) !== 0);
      this.state.select({ call: calls.id[hit]!, key: row?.key ?? this.state.selection.key });
      this.state.open("call");
      return;
    }
    const trace = this.scene.traceAt(scale, place.lane, place.x);
    const run = this.scene.runAt(scale, place.lane, place.x, this.state.overview?.end_ns ?? 0);
    const owner = trace?.function ?? (run === null ? null : this.scene.runs?.function[run]);
    if (owner !== null && owner !== undefined && this.state.row(`f${owner}`)) {
      this.state.select({ key: `f${owner}` });
      if (trace) this.state.open("traces");
    }
    // In a summed picture there is no call to select: a click looks closer.
    else if (!this.scene.single(scale)) this.zoom(0.25, (place.x - LEFT) / Math.max(1, this.width - LEFT - RIGHT));
  }

  fitSelection(): void {
    const { call } = this.state.selection;
    if (call === null) {
      const { start, end } = this.state.whole();
      if (this.state.overview) this.state.look(start, end);
      return;
    }
    const { calls } = this.scene;
    const place = calls.id.indexOf(call);
    if (place >= 0) {
      const end = calls.end[place]!;
      this.fit(beginOf(calls, place), Number.isNaN(end) ? (this.state.overview?.end_ns ?? 0) : end);
      return;
    }
    void this.source.ask("call", { id: call }).then(({ result }) => {
      if (result) this.fit(result.start_ns - (result.gil?.wait_ns ?? 0), result.end_ns ?? this.state.overview?.end_ns ?? 0);
    });
  }

  private hovered(event: PointerEvent): void {
    if (event.buttons) return;
    const place = this.at(event);
    const scale = this.scale();
    const now = this.state.overview?.end_ns ?? 0;
    const hit = place && this.scene.single(scale) ? this.scene.hit(scale, place.lane, place.x, now) : null;
    if (hit !== this.hover) {
      this.hover = hit;
      this.draw();
    }
    this.lanes.style.cursor = hit === null ? "default" : "pointer";
    if (!place) return this.hideTip();
    if (hit !== null) {
      this.showTip(event, this.callTip(hit));
      this.askMore(event, hit);
    }
    else {
      const trace = this.scene.traceAt(scale, place.lane, place.x);
      if (!trace) return this.hideTip();
      this.showTip(event, [
        h("div", {}, h("b", {}, `graph trace ${trace.ordinal}`), ` of ${trace.name}, ${time(trace.duration_ns)}`),
        ...trace.reason.map((line) => h("div.dim", {}, line)),
        trace.error ? h("div", {}, `failed: ${trace.error}`) : null,
      ]);
    }
  }

  /** Who held the GIL meanwhile, and which exception it was: only a call that one looks at is asked. */
  private askMore(event: PointerEvent, i: number): void {
    const id = this.scene.calls.id[i]!;
    if (this.more?.id === id) return;
    window.clearTimeout(this.moreLater);
    this.moreLater = window.setTimeout(() => {
      void this.source.ask("call", { id }).then(({ result }) => {
        if (!result || result.status === "running") return;
        this.more = result;
        // Meanwhile the pointer may be elsewhere, and other calls in the picture.
        if (this.hover !== null && !this.tip.hidden && this.scene.calls.id[this.hover] === id) this.showTip(event, this.callTip(this.hover));
      }, () => undefined);
    }, LINGER_MS);
  }
  private more: CallDetail | null = null;
  private moreLater = 0;

  private callTip(i: number): (Node | null)[] {
    const { calls } = this.scene;
    const gradient = calls.flags[i]! & GRADIENT ? "∇ " : "";
    const rows: [Parameters<typeof swatch>[0], string, number][] = [];
    const { resolution_ns: resolution = 0, gil = null } = this.state.overview ?? {};
    const end = calls.end[i]!;
    if (!Number.isNaN(calls.wait[i]!)) rows.push(["wait", "wait", calls.wait[i]!]);
    if (!Number.isNaN(calls.held[i]!)) rows.push([gradient ? "gradient" : "held", "held", calls.held[i]!]);
    else if (!Number.isNaN(end)) rows.push([gradient ? "gradient" : "held", "body", end - calls.start[i]! - calls.stopped[i]!]);
    if (!Number.isNaN(calls.released[i]!)) rows.push(["released", "released", calls.released[i]!]);
    if (calls.stopped[i]!) rows.push(["stop", "stopped", calls.stopped[i]!]);
    const more = this.more?.id === calls.id[i] ? this.more : null;
    const held = this.scene.stops.some((stop) => stop.call === calls.id[i] && stop.end_ns === null);
    return [
      h("div", {}, h("b", {}, `${gradient}${this.state.nodeName(calls.node[i]!)} #${calls.id[i]!}`), ` ${this.state.threadName(calls.thread[i]!)}`),
      h("table", {}, ...rows.map(([kind, name, ns]) => h("tr", {}, h("td", {}, swatch(kind)), h("td", {}, name), h("td", {}, kind === "wait" ? waited(ns, resolution, gil) : time(ns))))),
      ...(more?.gil?.blame ?? []).slice(0, 2).map(([who, ns]) => h("div.dim", {}, `behind ${who} ${time(ns)}`)),
      calls.flags[i]! & ERROR ? h("div", {}, more?.failure ? `${more.failure.type}: ${more.failure.message.split("\n")[0]!.slice(0, 120)}` : "an exception left the body") : null,
      calls.flags[i]! & INTERRUPTED ? h("div", {}, "ended by hand at a stop") : null,
      Number.isNaN(end) ? h("div", {}, this.state.unended(held)) : null,
    ];
  }

  private showTip(event: PointerEvent, content: (Node | null)[]): void {
    clear(this.tip, ...content);
    this.tip.hidden = false;
    const bounds = this.root.getBoundingClientRect();
    const left = event.clientX - bounds.left + 12;
    const top = event.clientY - bounds.top + 14;
    this.tip.style.left = `${Math.max(4, Math.min(left, bounds.width - this.tip.offsetWidth - 8))}px`;
    const below = top + this.tip.offsetHeight < bounds.height - 4;
    this.tip.style.top = `${below ? top : Math.max(4, top - this.tip.offsetHeight - 26)}px`;
  }

  private hideTip(): void {
    this.tip.hidden = true;
  }

  private unhover(): void {
    this.hideTip();
    if (this.hover !== null) {
      this.hover = null;
      this.draw();
    }
  }
}
