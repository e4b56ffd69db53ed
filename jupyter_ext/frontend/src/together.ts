// A report of several recordings: a page over all of their processes, and each recording's own report behind a tab.
import { decodeContainer, EmbeddedSource, type Embedded } from "./data/embedded";
import type { CallKind, Ledger, LedgerRow, Severity } from "./data/protocol";
import type { ArrayPlace, Arrays } from "./data/protocol";
import { clear, h, prose, text } from "./dom";
import { int, inUnit, percent, plural, time, unitOf, waited } from "./format";
import { Panel } from "./panel";
import { State } from "./state";
import { readTheme, watchTheme } from "./theme";
import { cross, makePaints, swatch } from "./timeline/paint";
import { makeScale, ticks, type Scale } from "./timeline/scale";
import { LedgerView } from "./views/ledger";

interface Process {
  name: string;
  path: string;
  pid: number | null;
  host: string | null;
  program: string;
  state: string;
  wall_ns: number | null;
  length_ns: number;
  cost: number | null;
  /** Numbers by severity; null if nobody looked. */
  findings: Partial<Record<Severity, number>> | null;
  /** Begin and length of graph traces, ns since the recording's first moment. */
  traces: [number, number][];
  calls: number;
  dropped: number;
  errors: number;
  runs: number;
  gil: string | null;
  resolution_ns: number;
  first_call: number | null;
}

/** A row of the ledger in one process, with the key that it has there. */
interface RowOfProcess
  extends Pick<LedgerRow, "key" | "traced" | "runs" | "calls" | "errors" | "mean_ns" | "p95_ns" | "parts" | "severity" | "why"> {
  process: number;
  total_ns: number | null;
}

interface FindingOfProcesses {
  rule: string;
  severity: Severity;
  fix: string;
  place: string;
  processes: { process: number; calls: number[]; message: string }[];
}

/** What pyfunc_debug/report/processes.py collects. */
export interface TogetherData {
  processes: Process[];
  axis: { wall_ns: number | null; starts: number[]; length_ns: number };
  ledger: Ledger;
  by: Record<string, RowOfProcess[]>;
  findings: FindingOfProcesses[] | null;
  notes: string[];
  arrays: Record<string, ArrayPlace>;
}

interface Target {
  call?: number;
  key?: string;
}

const STRIP = 26;

export class Together {
  readonly state = new State();
  private readonly tabs: HTMLButtonElement[] = [];
  private readonly overview: HTMLElement;
  private readonly panels = new Map<number, Promise<Panel>>();
  private readonly pages = new Map<number, HTMLElement>();
  private readonly by = h("div.bx.byproc");
  private readonly strips: HTMLCanvasElement[] = [];
  private readonly axis = h("canvas.pstrip", { "aria-hidden": "true" });
  private readonly bar: HTMLElement;
  private current = -1;

  constructor(
    private readonly root: HTMLElement,
    private readonly data: TogetherData,
    private readonly arrays: Arrays,
    private readonly recordings: readonly (() => string)[],
    private readonly signal: AbortSignal,
  ) {
    const { state } = this;
    state.ledger = data.ledger;
    state.selection = { key: data.ledger.rows.find((row) => row.type === "node")?.key ?? data.ledger.rows[0]?.key ?? null, call: null };
    const list = h("div.tabs.procs-tabs", { role: "tablist", "aria-label": "Recordings" });
    for (const [i, name] of [[-1, "All processes"] as const, ...data.processes.map((process, i) => [i, process.name] as const)]) {
      const button = h("button", { type: "button", role: "tab", "data-process": i }, name);
      button.addEventListener("click", () => void this.open(i), { signal });
      this.tabs.push(button);
      list.append(button);
    }
    list.addEventListener("keydown", (event) => this.key(event), { signal });
    this.bar = h("nav.pfd.is-report.switch", { "aria-label": "Recordings" }, list);
    const ledger = new LedgerView(state, signal);
    this.overview = h(
      "div.pfd.is-report.together",
      { role: "tabpanel", "aria-label": "All processes" },
      h(
        "main.rep",
        {},
        ...data.notes.map((note) => h("p.meta", {}, `${note}.`)),
        h("section.rs", {}, h("h2", {}, plural(data.processes.length, "recording")), h("div.bx", {}, this.processes())),
        h("section.rs", {}, h("h2", {}, "Findings"), h("div.bx", {}, this.findings())),
        h("section.rs", {}, h("h2", {}, "Ledger of all processes"), h("div.bx", {}, ledger.element), this.by),
      ),
    );
    root.append(this.bar, this.overview);
    ledger.onOpen = () => this.by.querySelector<HTMLElement>("button")?.focus();
    state.on("selection", () => this.paintBy(), signal);
    this.paintBy();
    const observer = new ResizeObserver(() => this.draw());
    observer.observe(this.overview);
    signal.addEventListener("abort", () => observer.disconnect());
    watchTheme(() => this.draw(), signal);
    void this.open(-1);
    this.draw();
  }

  /** Shows a recording's own report, or with -1 the page over all. */
  async open(process: number, target: Target = {}): Promise<void> {
    const first = !this.panels.has(process);
    this.current = process;
    this.tabs.forEach((tab, i) => {
      const on = i === process + 1;
      tab.setAttribute("aria-selected", String(on));
      tab.setAttribute("tabindex", on ? "0" : "-1");
    });
    this.overview.hidden = process !== -1;
    for (const [i, page] of this.pages) page.hidden = i !== process;
    if (process === -1) {
      this.draw();
      return;
    }
    const panel = await this.panel(process);
    if (target.key !== undefined) panel.state.select({ key: target.key, call: null });
    const call = target.call ?? (first && target.key === undefined ? this.data.processes[process]!.first_call : null);
    if (call !== null && call !== undefined) await panel.show({ call });
    if (target.call !== undefined || target.key !== undefined) {
      const section = target.call !== undefined ? ".d-call" : ".lg";
      this.pages.get(process)?.querySelector(section)?.scrollIntoView({ block: "center" });
    }
  }

  private panel(process: number): Promise<Panel> {
    const known = this.panels.get(process);
    if (known) return known;
    const inner = h("div");
    const page = h("div.own", { role: "tabpanel", "aria-label": this.data.processes[process]!.name }, inner);
    this.pages.set(process, page);
    page.hidden = this.current !== process;
    this.root.append(page);
    const made = decodeContainer<Embedded>(this.recordings[process]!()).then(async ({ data, arrays }) => {
      const panel = new Panel(inner, new EmbeddedSource(data, arrays), { layout: "report" }, this.signal);
      await panel.refresh();
      return panel;
    });
    made.catch((error: Error) => text(page, `This recording cannot be drawn here (${error.message}).`));
    this.panels.set(process, made);
    return made;
  }

  private key(event: KeyboardEvent): void {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!by) return;
    const next = (this.current + 1 + by + this.tabs.length) % this.tabs.length;
    void this.open(next - 1);
    this.tabs[next]?.focus();
    event.preventDefault();
  }

  private link(process: number, label: string, target: Target = {}): HTMLButtonElement {
    const button = h("button.lk", { type: "button", title: this.data.processes[process]!.path }, label);
    button.addEventListener("click", () => void this.open(process, target), { signal: this.signal });
    return button;
  }

  private processes(): HTMLElement {
    const rows = this.data.processes.map((process, i) => {
      const strip = h("canvas.pstrip", { role: "img", "aria-label": this.stripText(process, i) });
      this.strips.push(strip);
      const who = [process.pid === null ? "" : `pid ${process.pid}`, process.host ?? ""].filter(Boolean).join(" on ");
      return h(
        "tr",
        { title: process.program },
        h("th.l", { scope: "row" }, this.link(i, process.name), h("small", {}, who), process.state === "complete" ? null : h("small", {}, h("b", {}, process.state))),
        h("td.stripcell", {}, strip),
        h("td", { "data-label": "length" }, time(process.length_ns)),
        h("td", { "data-label": "calls" }, int(process.calls), process.dropped ? h("small", { title: "calls that found no room in their recording" }, ` ${int(process.dropped)} not stored`) : null),
        h("td", { "data-label": "err" }, process.errors ? h("span.err", {}, `✕ ${int(process.errors)}`) : "0"),
        h("td", { "data-label": "findings" }, process.findings === null ? h("span", { title: "nobody looked" }, "–") : this.counts(process.findings)),
        h("td.l", { "data-label": "GIL" }, process.gil ?? "not measured"),
      );
    });
    const heads = [["length", "how long was recorded"], ["calls", "executions of bodies"], ["err", "calls that an exception left"], ["findings", "errors E, warnings W, notes N"], ["GIL", "how waiting for the GIL was measured"]];
    return h(
      "table.grid.procs",
      { "aria-label": "Recordings" },
      h(
        "thead",
        {},
        h("tr", {}, h("th.l", { scope: "col" }, "recording"), h("th.stripcell", { scope: "col" }, this.axis, h("span.legend", {}, h("span", {}, swatch("held"), "threads in bodies"), h("span", {}, swatch("wait"), "waiting for the GIL"), h("span", {}, swatch("trace"), "graph trace"), h("span", {}, swatch("error"), "error"))), ...heads.map(([name, title]) => h("th", { scope: "col", title: title!, class: name === "GIL" ? "l" : "" }, name!))),
      ),
      h("tbody", {}, ...rows),
    );
  }

  private counts(findings: Partial<Record<Severity, number>>): HTMLElement | string {
    const parts = (["error", "warning", "note"] as const).filter((severity) => findings[severity]);
    if (!parts.length) return "0";
    return h("span.sevs", {}, ...parts.flatMap((severity) => [h("span", { class: `sev sev-${severity[0]!.toUpperCase()}`, role: "img", "aria-label": severity }, severity[0]!.toUpperCase()), ` ${findings[severity]} `]));
  }

  private stripText(process: Process, i: number): string {
    const busy = Array.from(this.arrays[`busy${i}`] ?? []);
    const mean = busy.reduce((a, b) => a + b, 0) / Math.max(1, busy.length);
    return `${process.name}: on average ${mean.toFixed(2)} threads in bodies, ${plural(process.traces.length, "graph trace")}, ${plural(process.errors, "error")}`;
  }

  private findings(): HTMLElement {
    const { findings } = this.data;
    if (findings === null) return h("p.empty", {}, "The doctor has not looked at these recordings.");
    if (!findings.length) return h("p.empty", {}, "Nothing found in any of them.");
    return h(
      "ul.finds",
      {},
      ...findings.map((finding) => {
        const letter = finding.severity[0]!.toUpperCase();
        return h(
          "li.open",
          {},
          h("div.fr", {}, h("span", { class: `sev sev-${letter}`, "aria-hidden": "true" }, letter), h("b", {}, `${finding.severity}: ${finding.rule}`), h("code", {}, finding.place), h("span.cnt.who", {}, h("span.dim", {}, "in "), ...finding.processes.slice(0, 8).map(({ process, calls }) => this.link(process, this.data.processes[process]!.name, calls.length ? { call: calls[0]! } : {})), finding.processes.length > 8 ? h("span.dim", {}, `and ${finding.processes.length - 8} more`) : null)),
          ...(new Set(finding.processes.map((one) => one.message)).size > 1
            ? finding.processes.slice(0, 8).map((one) => h("p", {}, h("span.dim", {}, `${this.data.processes[one.process]!.name}: `), ...prose(one.message)))
            : [h("p", {}, ...prose(finding.processes[0]!.message))]),
          finding.fix ? h("p.dim", {}, ...prose(finding.fix)) : null,
        );
      }),
    );
  }

  /** The selected row, process by process. */
  private paintBy(): void {
    const row = this.state.row();
    this.by.hidden = !row;
    if (!row) return;
    const own = this.data.by[row.key] ?? [];
    const unit = unitOf(own.flatMap((one) => [one.mean_ns, one.p95_ns]));
    const longest = Math.max(1, ...own.map((one) => one.mean_ns ?? 0));
    const function_ = row.type === "function";
    const dash = (value: number | null): string => (value === null ? "–" : int(value));
    const kind: CallKind | null = row.call_kind;
    const name = kind === "gradient" ? `∇ ${this.state.row(row.parent)?.name ?? ""}` : row.name;
    const missing = this.data.processes.length - new Set(own.map((one) => one.process)).size;
    clear(
      this.by,
      h(
        "table.grid",
        {},
        h("caption", {}, h("b", {}, name), h("span.dim", {}, ` in each recording${missing ? `; ${missing} of them never made it` : ""}`)),
        h(
          "thead",
          {},
          h("tr", {}, h("th.l", { scope: "col" }, "recording"), ...(function_ ? ["traced", "runs"] : ["calls"]).map((head) => h("th", { scope: "col" }, head)), h("th", { scope: "col" }, "err"), h("th", { scope: "col" }, `mean ${unit.name}`), h("th.l.mean", { scope: "col", "aria-label": "mean as a bar" }), h("th", { scope: "col" }, `p95 ${unit.name}`), function_ ? null : h("th", { scope: "col" }, "GIL wait"), h("th.l", { scope: "col" }, "")),
        ),
        h(
          "tbody",
          {},
          ...own.map((one) => {
            const bar = h("i", { class: kind === "gradient" ? "g" : "h" });
            bar.style.width = `${((one.mean_ns ?? 0) / longest) * 100}%`;
            const wait = one.parts && one.calls ? one.parts.wait_ns / one.calls : null;
            return h(
              "tr",
              {},
              h("th.l", { scope: "row" }, this.link(one.process, this.data.processes[one.process]!.name, { key: one.key })),
              ...(function_ ? [h("td", {}, one.traced === null ? "–" : `${int(one.traced)}×`), h("td", {}, one.runs === null ? "–" : `${int(one.runs)}×`)] : [h("td", {}, dash(one.calls))]),
              h("td", {}, one.errors ? h("span.err", {}, `✕ ${int(one.errors)}`) : dash(one.errors)),
              h("td", {}, one.mean_ns === null ? "–" : inUnit(one.mean_ns, unit)),
              h("td.l.mean", {}, h("span.bar", { "aria-hidden": "true" }, bar)),
              h("td", {}, one.p95_ns === null ? "–" : inUnit(one.p95_ns, unit)),
              function_ ? null : h("td", {}, wait === null ? "not measured" : waited(wait, this.data.processes[one.process]!.resolution_ns, this.data.processes[one.process]!.gil)),
              h("td.l.whys", { title: one.why.join("\n") }, one.why[0] ?? ""),
            );
          }),
        ),
      ),
    );
    if (row.share !== null) this.by.append(h("p.empty", {}, `${percent(row.share)} % of the time of all calls of all processes.`));
  }

  private draw(): void {
    if (this.overview.hidden) return;
    const { colours, font } = readTheme(this.overview);
    this.bar.dataset["theme"] = this.overview.dataset["theme"]!;
    const { axis } = this.data;
    const ratio = devicePixelRatio || 1;
    const width = Math.floor((this.strips[0]?.parentElement?.clientWidth ?? 0) - 12);
    if (width < 40) return;
    const scale = makeScale({ start: 0, end: Math.max(1, axis.length_ns) }, 0, width);
    const context = (canvas: HTMLCanvasElement, height: number): CanvasRenderingContext2D | null => {
      canvas.width = width * ratio;
      canvas.height = height * ratio;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
      const c = canvas.getContext("2d");
      c?.setTransform(ratio, 0, 0, ratio, 0, 0);
      return c;
    };
    const head = context(this.axis, 16);
    if (head) {
      head.font = `11px ${font}`;
      head.fillStyle = colours.dim;
      head.textBaseline = "middle";
      for (const tick of ticks(scale.view, width, 90).major) {
        const x = scale.x(tick.ns);
        if (x + head.measureText(tick.label).width < width) head.fillText(tick.label, x + 2, 8);
      }
    }
    const highest = Math.max(1, ...this.data.processes.flatMap((_, i) => [...(this.arrays[`busy${i}`] ?? []), ...(this.arrays[`waiting${i}`] ?? [])]));
    this.strips.forEach((canvas, i) => {
      const c = context(canvas, STRIP);
      if (c) this.strip(c, scale, i, highest, makePaints(c, colours, font, ratio));
    });
  }

  private strip(c: CanvasRenderingContext2D, scale: Scale, i: number, highest: number, paints: ReturnType<typeof makePaints>): void {
    const process = this.data.processes[i]!;
    const start = this.data.axis.starts[i]!;
    const from = scale.x(start);
    const wide = Math.max(2, scale.x(start + process.length_ns) - from);
    c.fillStyle = paints.colours.bg2;
    c.fillRect(from, 1, wide, STRIP - 2);
    c.fillStyle = paints.fill.trace;
    for (const [begin, length] of process.traces) c.fillRect(scale.x(start + begin), 2, Math.max(1.5, (length / process.length_ns) * wide), STRIP - 4);
    const area = (values: ArrayLike<number>, top: number, tall: number, fill: CanvasPattern | string): void => {
      c.fillStyle = fill;
      const step = wide / Math.max(1, values.length);
      for (let k = 0; k < values.length; k++) {
        const size = (values[k]! / highest) * tall;
        if (size > 0) c.fillRect(from + k * step, top + tall - size, step + 0.3, size);
      }
    };
    area(this.arrays[`busy${i}`] ?? [], 2, 13, paints.colours.held);
    area(this.arrays[`waiting${i}`] ?? [], 16, 8, paints.colours.wait);
    c.strokeStyle = paints.colours.run;
    c.strokeRect(from + 0.5, 0.5, Math.max(1, wide - 1), STRIP - 1);
    const errors = this.arrays[`errors${i}`] ?? [];
    for (let k = 0; k < errors.length; k++) cross(c, Math.max(5, scale.x(start + errors[k]!)), 7, 9);
  }
}

/** Builds the report of several recordings in a page that holds their data. */
export async function together(root: HTMLElement, packed: string, recordings: readonly (() => string)[]): Promise<Together> {
  const { data, arrays } = await decodeContainer<TogetherData>(packed);
  return new Together(root, data, arrays, recordings, new AbortController().signal);
}
