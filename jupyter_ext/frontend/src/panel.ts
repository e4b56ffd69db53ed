// The panel: puts the parts together, hears the keys, and asks for what is new.
import type { DataSource, Place } from "./data/source";
import { clear, h, keepClicks, text } from "./dom";
import { matcher } from "./glob";
import { keepKeys } from "./keys";
import { Breakpoints } from "./data/breakpoints";
import { State, type Tab } from "./state";
import { Folds } from "./timeline/folds";
import { Timeline } from "./timeline/view";
import { BreakpointList } from "./views/breakpoints";
import { CallPane } from "./views/call";
import { CallsView } from "./views/calls";
import { FindingsPane } from "./views/findings";
import { GilPane } from "./views/gil";
import { Header } from "./views/header";
import { LedgerView } from "./views/ledger";
import { SourcePane } from "./views/source";
import { StopPane } from "./views/stop";
import { TracesPane } from "./views/traces";

const TABS: [Tab, string][] = [
  ["call", "Call"],
  ["source", "Source"],
  ["traces", "Traces"],
  ["gil", "GIL"],
  ["stop", "Stop"],
  ["findings", "Findings"],
];
const KEYS: [string, string][] = [
  ["/", "filter the ledger"],
  ["↑ ↓ Home End", "move in a table"],
  ["Enter", "open: from the ledger to its calls, from a call to its detail"],
  ["← →", "fold and unfold in the ledger; change tab"],
  ["w s", "zoom in and out"],
  ["a d", "earlier and later"],
  ["f", "fit the selected call, or the whole recording"],
  ["[ ]", "previous and next call of the node"],
  [", .", "back and forward through what was selected"],
  ["Ctrl + wheel", "zoom at the pointer (without Ctrl when the timeline has the focus)"],
  ["drag, Shift + drag", "move in time, select a stretch of time"],
  ["b", "stop calls of the selected node, or no longer"],
  ["c n s r u d", "in the Stop pane: continue, next, step, return, up, down"],
  ["?", "this help; Escape closes it"],
];
const HEIGHT_KEY = "pyfunc_debug.panel.height";

export interface PanelOptions {
  layout: "panel" | "report";
}

export class Panel {
  readonly state = new State();
  readonly timeline: Timeline;
  private readonly ledger: LedgerView;
  private readonly calls: CallsView;
  private readonly call: CallPane;
  private readonly panes: Record<Tab, { element: HTMLElement }>;
  private readonly help: HTMLElement;
  private readonly count = h("span.n");
  private readonly tabs = new Map<Tab, HTMLButtonElement>();
  private refreshing = false;
  private again = false;
  private retry = 0;

  constructor(
    private readonly root: HTMLElement,
    private readonly source: DataSource,
    private readonly options: PanelOptions,
    private readonly signal: AbortSignal,
  ) {
    const { state } = this;
    const report = options.layout === "report";
    root.classList.add("pfd");
    root.classList.toggle("is-report", report);
    root.setAttribute("role", "region");
    root.setAttribute("aria-label", "pyfunc_debug");
    keepKeys(root, signal);
    keepClicks(root, signal);
    const goto = (file: string, line: number): void => {
      state.open("source");
      this.sourcePane.goto(file, line);
      if (report) this.sourcePane.element.scrollIntoView({ block: "start" });
    };
    const visible = (tab: Tab) => (): boolean => report || state.tab === tab;
    const breakpoints = source.stops ? new Breakpoints(source.stops) : null;
    this.breakpoints = breakpoints;
    this.ledger = new LedgerView(state, signal);
    this.calls = new CallsView(state, source, breakpoints, signal);
    this.timeline = new Timeline(state, source, root, signal);
    this.call = new CallPane(state, source, goto, breakpoints, signal);
    this.sourcePane = new SourcePane(state, source, visible("source"), breakpoints, signal);
    const list = breakpoints && new BreakpointList(state, breakpoints, (node) => this.inputsOf(node), signal);
    this.stop = new StopPane(state, source.stops, () => this.toDetail(), list?.element ?? null, signal);
    if (breakpoints) {
      state.on(["overview", "tab"], () => breakpoints.refresh(), signal);
      source.stops?.onChange(() => breakpoints.refresh(), signal);
      const timer = window.setInterval(() => ["call", "stop", "source"].includes(state.tab) && root.checkVisibility() && breakpoints.refresh(), 3000);
      signal.addEventListener("abort", () => window.clearInterval(timer));
      breakpoints.refresh();
    }
    this.panes = {
      call: this.call,
      source: this.sourcePane,
      traces: new TracesPane(state, source, goto, visible("traces"), signal),
      gil: new GilPane(state, source, root, visible("gil"), signal),
      stop: this.stop,
      findings: new FindingsPane(state, source, goto, visible("findings"), report, signal),
    };
    this.help = this.makeHelp();
    const header = new Header(state, source, this.stop.chip, () => this.toggleHelp(), () => this.hold(), signal);
    if (report) this.layReport(header.element);
    else this.layPanel(header.element);
    root.append(this.help);
    this.ledger.onOpen = () => this.calls.focusTable();
    state.on("tab", () => this.showTab(), signal);
    state.on("overview", () => this.paintCount(), signal);
    root.addEventListener("keydown", (event) => this.key(event), { signal });
    source.onLink((link) => {
      root.dataset["link"] = link.state;
      state.emit("link");
    }, signal);
    source.onRevision(() => {
      if (!state.held) void this.refresh();
    }, signal);
    source.onShow((place) => void this.show(place), signal);
    this.showTab();
  }
  private readonly breakpoints: Breakpoints | null;
  private readonly sourcePane: SourcePane;
  private readonly stop: StopPane;

  /** Asks for the header and the ledger; the other parts ask for what they show. */
  async refresh(): Promise<void> {
    if (this.refreshing) {
      this.again = true;
      return;
    }
    this.refreshing = true;
    try {
      const width = Math.max(200, Math.floor(this.root.clientWidth * 0.6));
      const [overview, ledger] = await Promise.all([this.source.ask("overview", { width }), this.source.ask("ledger", {})]);
      if (this.signal.aborted) return;
      const { state } = this;
      state.overview = overview.result;
      state.folds = new Folds(overview.result.folds);
      state.trouble = "";
      state.waiting = overview.arrays["waiting"] ?? [];
      state.errors = overview.arrays["errors"] ?? [];
      state.ledger = ledger.result;
      if (state.selection.key === null || !state.row()) {
        const own = state.ledger.rows.filter((row) => row.type === "node" && row.origin === "user");
        const first = own.find((row) => row.errors) ?? own.find((row) => row.calls) ?? own[0];
        if (first) state.selection = { ...state.selection, key: first.key };
      }
      state.emit("ledger");
      state.emit("overview");
      if (!state.chosen && state.overview.first !== null && state.overview.first !== state.selection.call) void this.lookFirst(state.overview.first);
    } catch (error) {
      this.state.trouble = error instanceof Error ? error.message : String(error);
      this.state.emit("link");
      // A huge recording may take longer to open than anybody waits for an answer: ask again, it is open by then.
      if (!this.state.overview && this.root.dataset["link"] !== "lost" && !this.signal.aborted) {
        window.clearTimeout(this.retry);
        this.retry = window.setTimeout(() => void this.refresh(), 2000);
        this.signal.addEventListener("abort", () => window.clearTimeout(this.retry), { once: true });
      }
    } finally {
      this.refreshing = false;
      if (this.again && !this.signal.aborted) {
        this.again = false;
        void this.refresh();
      }
    }
  }

  /** Where nobody has chosen anything yet, the call that matters most is open. */
  private async lookFirst(call: number): Promise<void> {
    const { result } = await this.source.ask("call", { id: call });
    const { state } = this;
    if (!result || state.chosen || this.signal.aborted) return;
    state.selection = { call, key: state.rowOfNode(result.node, result.kind === "gradient")?.key ?? state.selection.key };
    state.emit("selection");
  }

  /** Selects a call or a node that something outside asked for. */
  async show(place: Place): Promise<void> {
    if (!this.state.overview) await this.refresh();
    if (place.call !== undefined) {
      const { result } = await this.source.ask("call", { id: place.call });
      const row = result && this.state.rowOfNode(result.node, result.kind === "gradient");
      this.state.select({ call: place.call, key: row?.key ?? this.state.selection.key });
      this.state.open("call");
      if (this.options.layout === "panel") this.timeline.fitSelection();
    } else if (place.node !== undefined) {
      const row = this.state.rowOfNode(place.node, false);
      if (row) this.state.select({ key: row.key });
    } else if (place.file !== undefined) {
      this.state.open("source");
      this.sourcePane.goto(place.file, place.line ?? 1);
    }
  }

  /** Names of a node's inputs, as its newest recorded call had them. */
  private async inputsOf(node: string): Promise<string[]> {
    const match = matcher(node);
    const row = this.state.ledger.rows.find((item) => item.type === "node" && item.call_kind === "forward" && (State.body(item) === node || (/[*?[]/.test(node) && match([State.body(item)], ""))));
    if (!row?.calls) return [];
    const page = await this.source.ask("calls", { nodes: row.nodes, kind: "forward", sort: "id", descending: true, offset: 0, limit: 1 });
    const id = page.result.rows[0]?.id;
    const detail = id === undefined ? null : (await this.source.ask("call", { id })).result;
    return detail?.values.filter((value) => value.role === "in").map((value) => value.path) ?? [];
  }

  private hold(): void {
    this.state.held = !this.state.held;
    if (!this.state.held) void this.refresh();
    this.state.emit("link");
  }

  private layPanel(header: HTMLElement): void {
    const list = h("div.tabs", { role: "tablist", "aria-label": "Detail" });
    for (const [tab, name] of TABS) {
      const id = `pfd-${Math.random().toString(36).slice(2)}`;
      const button = h("button", { type: "button", role: "tab", "data-tab": tab, "data-focus": `tab-${tab}`, "aria-controls": id }, name, tab === "findings" ? this.count : null);
      button.addEventListener("click", () => {
        this.state.open(tab);
        this.toDetail();
      }, { signal: this.signal });
      this.tabs.set(tab, button);
      list.append(button);
      const { element } = this.panes[tab];
      element.id = id;
      element.setAttribute("role", "tabpanel");
      element.setAttribute("aria-label", name);
    }
    list.addEventListener("keydown", (event) => this.tabKey(event), { signal: this.signal });
    const grip = h("div.grip", { "aria-hidden": "true" });
    this.root.append(
      header,
      h(
        "div.cols",
        {},
        h("div.left", {}, this.ledger.element, this.calls.element),
        h("div.right", {}, this.timeline.element, h("section.dt", { "aria-label": "Detail" }, list, ...TABS.map(([tab]) => this.panes[tab].element))),
      ),
      grip,
    );
    this.resizable(grip);
    let stacked = false;
    const observer = new ResizeObserver(() => {
      const now = this.stacked();
      // Where the window became narrow at a stop, the stop stays in view.
      if (now && !stacked && this.state.tab === "stop" && this.state.stopped) this.toDetail();
      stacked = now;
    });
    observer.observe(this.root);
    this.signal.addEventListener("abort", () => observer.disconnect());
  }

  private layReport(header: HTMLElement): void {
    const meta = h("p.meta");
    const section = (title: string, ...elements: HTMLElement[]): HTMLElement => h("section.rs", {}, h("h2", {}, title), h("div.bx", {}, ...elements));
    this.root.append(
      header,
      h(
        "main.rep",
        {},
        meta,
        section("Findings", this.panes.findings.element),
        section("Ledger", this.ledger.element),
        section("Graph traces", this.panes.traces.element),
        section("Timeline", this.timeline.element),
        section("Calls", this.calls.element),
        section("Call", this.call.element),
        section("GIL", this.panes.gil.element),
        section("Source", this.sourcePane.element),
      ),
    );
    this.state.on("overview", () => text(meta, this.metaText()), this.signal);
  }

  private metaText(): string {
    const overview = this.state.overview;
    if (!overview) return "";
    const versions = overview.versions;
    const named = ([name, label]: [string, string]): string => (versions[name] ? `${label} ${String(versions[name])}` : "");
    const parts = [
      overview.wall_ns ? `Recorded ${new Date(overview.wall_ns / 1e6).toISOString().replace("T", " ").slice(0, 16)} UTC` : "",
      ([["python", "Python"], ["tensorflow", "TensorFlow"], ["numpy", "NumPy"]] as [string, string][]).map(named).filter(Boolean).join(", "),
      overview.options["values"] ? `Values: ${String(overview.options["values"])}` : "",
      overview.options["gradients"] ? `Gradients: ${String(overview.options["gradients"])}` : "",
      `Not stored for lack of budget: ${overview.dropped} calls`,
      this.source.trimmed,
      overview.holds ? `This file ${overview.holds}` : "",
    ];
    return parts.filter(Boolean).map((part) => (part.endsWith(".") ? part : `${part}.`)).join(" ");
  }

  private stacked(): boolean {
    const columns = this.root.querySelector<HTMLElement>(".cols");
    return columns !== null && getComputedStyle(columns).display === "block";
  }

  /** Where everything is stacked, a stop and a tab bring their place into view. */
  private toDetail(): void {
    const columns = this.root.querySelector<HTMLElement>(".cols");
    const detail = this.root.querySelector<HTMLElement>(".dt");
    if (columns && detail && columns.scrollHeight > columns.clientHeight + 1) columns.scrollTop = detail.offsetTop - columns.offsetTop;
  }

  private showTab(): void {
    if (this.options.layout === "report") return;
    for (const [tab] of TABS) {
      const on = tab === this.state.tab;
      this.panes[tab].element.hidden = !on;
      const button = this.tabs.get(tab);
      button?.setAttribute("aria-selected", String(on));
      button?.setAttribute("tabindex", on ? "0" : "-1");
    }
  }

  private paintCount(): void {
    const findings = this.state.overview?.findings;
    text(this.count, findings === null || findings === undefined ? "–" : String(findings));
  }

  private tabKey(event: KeyboardEvent): void {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!by) return;
    const at = TABS.findIndex(([tab]) => tab === this.state.tab);
    const [next] = TABS[(at + by + TABS.length) % TABS.length]!;
    this.state.open(next);
    this.tabs.get(next)?.focus();
    event.preventDefault();
    event.stopPropagation();
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target as HTMLElement;
    if (event.key === "Escape" && !this.help.hidden) {
      this.toggleHelp(false);
      return;
    }
    if (target.closest("input, select, textarea, [contenteditable]")) return;
    // With the focus in the Stop pane, letters are pdb's.
    if (this.panes.stop.element.contains(target)) return;
    const { timeline, state } = this;
    const actions: Record<string, () => void> = {
      "/": () => this.ledger.filter.focus(),
      w: () => timeline.zoom(1 / 1.2),
      s: () => timeline.zoom(1.2),
      a: () => timeline.pan(-0.15),
      d: () => timeline.pan(0.15),
      f: () => timeline.fitSelection(),
      "[": () => this.call.step(-1),
      "]": () => this.call.step(1),
      "?": () => this.toggleHelp(),
      b: () => this.toggleBreakpoint(),
      ",": () => state.go(-1),
      ".": () => state.go(1),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  /** A breakpoint on the selected row's node, or none any more. */
  private toggleBreakpoint(): void {
    const row = this.state.row();
    if (!this.breakpoints || row?.type !== "node") return;
    void this.breakpoints.toggle({ where: State.body(row) }, row.call_kind === "gradient" ? "gradient" : "before");
  }

  private makeHelp(): HTMLElement {
    return h(
      "div.help",
      { hidden: true, role: "dialog", "aria-label": "Keys", tabindex: -1 },
      h("h3", {}, "Keys"),
      h("dl", {}, ...KEYS.flatMap(([key, what]) => [h("dt", {}, key), h("dd", {}, what)])),
      h("p.dim", {}, "– means not known: C++ started it, or it was not measured. It is never zero."),
    );
  }

  private helpFrom: HTMLElement | null = null;
  private toggleHelp(open = this.help.hidden): void {
    if (open) this.helpFrom = (this.root.getRootNode() as Document).activeElement as HTMLElement | null;
    this.help.hidden = !open;
    if (open) this.help.focus({ preventScroll: true });
    else if (this.helpFrom && this.root.contains(this.helpFrom)) this.helpFrom.focus({ preventScroll: true });
  }

  /** The height is the person's, and remembered. */
  private resizable(grip: HTMLElement): void {
    const stored = Number(storage()?.getItem(HEIGHT_KEY));
    if (stored >= 320) this.root.style.height = `${Math.min(stored, 2000)}px`;
    grip.addEventListener(
      "pointerdown",
      (down) => {
        const from = this.root.offsetHeight - down.clientY;
        grip.setPointerCapture(down.pointerId);
        const ended = new AbortController();
        const options = { signal: AbortSignal.any([ended.signal, this.signal]) };
        grip.addEventListener("pointermove", (event) => (this.root.style.height = `${Math.max(320, from + event.clientY)}px`), options);
        grip.addEventListener("pointerup", () => {
          ended.abort();
          storage()?.setItem(HEIGHT_KEY, String(this.root.offsetHeight));
        }, options);
        down.preventDefault();
      },
      { signal: this.signal },
    );
  }

  dispose(): void {
    clear(this.root);
  }
}

function storage(): Storage | null {
  try {
    return window.localStorage;
  } catch {
    return null; // a sandboxed frame has none
  }
}
