// The calls of the selected node: the timeline's text equivalent. Rows come a page at a time; only those in sight exist.
import type { CallRow, CallsQuery } from "../data/protocol";
import type { DataSource } from "../data/source";
import { breakable, clear, h, keepFocus, onPress, prose, text } from "../dom";
import { inUnit, int, type Unit, unitOf, waited } from "../format";
import type { Breakpoints } from "../data/breakpoints";
import { State } from "../state";
import { statusOf } from "./call";
import { scrollTo, windowOf } from "./rows";

const ROW = 22;
const PAGE = 100;
const HEADS: [string, string, string][] = [
  ["id", "call", "number of the call in the recording"],
  ["start", "start s", "seconds since recording began"],
  ["thread", "thread", "thread that ran the body"],
  ["wait", "wait", "ready to run, but without the GIL"],
  ["held", "held", "in the body, holding the GIL"],
  ["released", "released", "in the body, with the GIL let go"],
  ["duration", "body", "time in the body"],
  ["status", "status", "ok, or the exception that left the body"],
];

export class CallsView {
  readonly element: HTMLElement;
  private readonly title = h("h3", {}, "Calls");
  private readonly count = h("small", {});
  private readonly note = h("small.note", { "aria-live": "polite" });
  private readonly head = h("tr");
  private readonly body = h("tbody");
  private readonly table = h("table.grid.calls", { role: "grid", "aria-label": "Calls of the selected row" }, h("thead", {}, this.head), this.body);
  // The table itself must not be stretched: the rows would be.
  private readonly sizer = h("div.sizer", {}, this.table);
  private readonly scroller = h("div.callsbox", {}, this.sizer);
  private readonly empty = h("p.empty");
  private readonly filter = h("input", { type: "text", placeholder: "nan(x)", "aria-label": "Show the calls for which this holds", title: "Only calls for which this holds, as of a breakpoint: nan(x), changed(x), x.max() > 1, shape(x) == (2,). Enter", spellcheck: false, "data-focus": "calls-filter" });
  private readonly brk = h("button.btn.sm.brk", { type: "button", hidden: true, "data-focus": "break" });
  private pages = new Map<number, CallRow[]>();
  private total = 0;
  private sort = { column: "id", descending: false };
  private key = "";
  private asking = new Set<number>();
  private generation = 0;
  private revision = -1;
  private unit: Unit | null = null;
  private reveal: number | null = null;
  private slow = 0;

  constructor(
    private readonly state: State,
    private readonly source: DataSource,
    private readonly breakpoints: Breakpoints | null,
    private readonly signal: AbortSignal,
  ) {
    this.element = h("section.cs", { "aria-label": "Calls of the selected row" }, h("div.sh", {}, this.title, this.count, this.note, h("span.sp"), source.kind === "kernel" ? h("label.callsif", {}, h("span", { "aria-hidden": "true" }, "if"), this.filter) : null, this.brk), this.scroller, this.empty);
    this.scroller.addEventListener("scroll", () => this.paint(), { signal, passive: true });
    const observer = new ResizeObserver(() => this.paint());
    observer.observe(this.scroller);
    signal.addEventListener("abort", () => observer.disconnect());
    onPress(this.body, "data-call", (event) => this.click(event), signal);
    this.body.addEventListener("keydown", (event) => this.onKey(event), { signal });
    this.head.addEventListener("click", (event) => this.sortBy(event), { signal });
    this.filter.addEventListener("change", () => this.changed(), { signal });
    state.on(["selection", "ledger"], () => this.changed(), signal);
    state.on("overview", () => this.renew(), signal);
    state.on("lanes", () => this.paint(), signal);
    this.brk.addEventListener("click", () => this.toggleBreakpoint(), { signal });
    breakpoints?.onChange(() => this.paintBreak(), signal);
  }

  private query(): Omit<CallsQuery, "offset" | "limit"> {
    const row = this.state.row();
    const condition = this.filter.value.trim();
    return { nodes: row ? row.nodes : null, kind: row?.call_kind ?? null, sort: this.sort.column, descending: this.sort.descending, ...(condition && { condition }) };
  }

  private changed(): void {
    const key = JSON.stringify(this.query());
    const { call } = this.state.selection;
    if (key !== this.key) {
      this.key = key;
      this.reset();
      this.reveal = call;
      this.scroller.scrollTop = 0;
      this.load(0, call);
    } else if (call !== null && call !== this.shownCall) {
      const place = this.placeOf(call);
      // A row that is here already is not asked for again: the call's detail comes sooner.
      if (place !== null) this.scroller.scrollTop = scrollTo(place, this.total, ROW, this.scroller.scrollTop, this.box());
      else {
        this.reveal = call;
        this.load(Math.floor(this.firstRow() / PAGE), call);
      }
    }
    this.shownCall = call;
    this.paint();
  }
  private shownCall: number | null = null;

  private placeOf(call: number): number | null {
    for (const [page, rows] of this.pages) {
      const at = rows.findIndex((row) => row.id === call);
      if (at >= 0) return page * PAGE + at;
    }
    return null;
  }

  private firstRow(): number {
    return windowOf(this.total, ROW, this.scroller.scrollTop, this.scroller.clientHeight, 0).first;
  }

  /** New data: what is in sight is asked again, nothing moves. Answers that are under way are waited for. */
  private renew(): void {
    const revision = this.state.overview?.revision ?? 0;
    if (revision === this.revision) return;
    if (this.asking.size) {
      this.stale = true;
      return;
    }
    this.stale = false;
    this.revision = revision;
    const sight = windowOf(this.total, ROW, this.scroller.scrollTop, this.scroller.clientHeight);
    const first = Math.floor(sight.first / PAGE);
    const last = Math.floor((sight.first + sight.count) / PAGE);
    for (const page of [...this.pages.keys()]) if (page < first || page > last) this.pages.delete(page);
    for (let page = first; page <= last; page++) this.load(page, null, true);
  }
  private stale = false;
  /** Whether the filter has not looked at all calls yet. */
  private more = false;

  private reset(): void {
    this.pages.clear();
    this.asking.clear();
    this.generation++;
    this.unit = null;
  }

  private load(page: number, find: number | null = null, again = false): void {
    if (this.asking.has(page) && find === null) return;
    if (this.pages.has(page) && find === null && !again) return;
    this.asking.add(page);
    const generation = this.generation;
    window.clearTimeout(this.slow);
    this.slow = window.setTimeout(() => text(this.note, "reading…"), 300);
    this.source
      .ask("calls", { ...this.query(), offset: page * PAGE, limit: PAGE, find })
      .then(({ result }) => {
        if (generation !== this.generation || this.signal.aborted) return;
        this.total = result.total;
        this.pages.set(page, result.rows);
        this.unit ??= unitOf(result.rows.flatMap((row) => [row.wait_ns, row.held_ns, row.duration_ns]));
        if (find !== null && find === this.reveal && result.index !== null) {
          this.reveal = null;
          this.sizes();
          this.scroller.scrollTop = scrollTo(result.index, this.total, ROW, this.scroller.scrollTop, this.box());
        }
        this.more = result.more ?? false;
        text(this.note, this.more ? "reading…" : (result.remark ?? ""));
        this.paint();
      })
      .catch((error: Error) => {
        text(this.note, error.message);
        if (generation !== this.generation || !this.filter.value.trim()) return;
        this.total = 0; // a condition that cannot be evaluated has no rows to wait for
        this.paint();
      })
      .finally(() => {
        window.clearTimeout(this.slow);
        if (generation !== this.generation) return;
        this.asking.delete(page);
        if (this.more) this.load(page, null, true);
        this.more = false;
        if (this.stale && !this.asking.size) this.renew();
      });
  }

  private box(): number {
    return Math.max(ROW, this.scroller.clientHeight - 22);
  }

  private sizes(): ReturnType<typeof windowOf> {
    const sight = windowOf(this.total, ROW, this.scroller.scrollTop, this.scroller.clientHeight);
    this.sizer.style.height = `${sight.height + 22}px`;
    return sight;
  }

  private paint(): void {
    const row = this.state.row();
    const name = row ? (row.call_kind === "gradient" ? `∇ ${this.state.row(row.parent ?? "")?.name ?? ""}` : row.name) : null;
    const gradients = row?.type === "node" && row.call_kind === "forward" ? this.state.row(`${row.key}g`)?.calls : null;
    clear(this.title, ...(name ? [row?.type === "function" ? "Calls in " : "Calls of ", h("code", {}, breakable(name))] : ["All calls"]));
    this.paintBreak();
    // What few calls leave of the height is the ledger's (tables.css).
    this.element.parentElement?.style.setProperty("--calls", `${52 + 22 * this.total}px`);
    text(this.count, `${int(this.total)}${gradients ? ` + ${int(gradients)} ∇` : ""}`);
    const sight = this.sizes();
    const measured = this.state.overview?.gil !== null;
    this.table.classList.toggle("nogil", !measured);
    this.table.classList.toggle("nosplit", measured && !this.state.overview?.split);
    const rows: (CallRow | null)[] = [];
    const missing = new Set<number>();
    for (let i = sight.first; i < sight.first + sight.count; i++) {
      const page = this.pages.get(Math.floor(i / PAGE));
      const item = page?.[i % PAGE] ?? null;
      if (!page) missing.add(Math.floor(i / PAGE));
      rows.push(item);
    }
    for (const page of missing) this.load(page);
    const unit = this.unit ?? unitOf([]);
    const tabStop = rows.some((item) => item?.id === this.state.selection.call) ? this.state.selection.call : rows.find(Boolean)?.id;
    keepFocus(this.element, () => {
      clear(
        this.head,
        ...HEADS.map(([column, label, title]) => {
          const on = this.sort.column === column && (column !== "id" || this.sort.descending);
          const unitName = ["wait", "held", "released", "duration"].includes(column) ? ` ${unit.name}` : "";
          return h("th", { scope: "col", class: `c-${column}${column === "thread" || column === "status" ? " l" : ""}`, "aria-sort": on ? (this.sort.descending ? "descending" : "ascending") : null },
            h("button.hd", { type: "button", title, "data-column": column, "data-focus": `calls-${column}` }, label, unitName && h("span.unit", {}, unitName), on ? h("u", {}, this.sort.descending ? "▾" : "▴") : null));
        }),
      );
      this.table.setAttribute("aria-rowcount", String(this.total));
      clear(
        this.body,
        sight.top > 0 ? h("tr.spacer", { "aria-hidden": "true", "data-h": sight.top }) : null,
        ...rows.map((item, i) => (item ? this.row(item, unit, item.id === tabStop, sight.first + i) : h("tr", { "aria-hidden": "true" }, h("td.dim.l", { colspan: 8 }, "…")))),
      );
      const spacer = this.body.querySelector<HTMLElement>("tr.spacer");
      if (spacer) spacer.style.height = `${sight.top}px`;
    });
    this.scroller.hidden = this.total === 0;
    this.empty.hidden = this.total > 0;
    if (this.total === 0) clear(this.empty, ...prose(this.filter.value.trim() ? (this.more ? "" : "No call fulfils the filter.") : row?.why[0] && row.calls ? row.why[0] : this.state.stopped ? `\`${this.state.stopped}\` is stopped: its row is being written.` : this.state.overview?.state !== "recording" ? "No calls." : row ? "No calls yet." : "No py_function ran yet."));
  }

  /** "Stop here next time", of the whole row. */
  private paintBreak(): void {
    const row = this.state.row();
    this.brk.hidden = !this.breakpoints || row?.type !== "node" || row.call_kind === "gradient";
    if (this.brk.hidden || !row) return;
    const known = this.breakpoints!.at({ where: State.body(row) });
    text(this.brk, known ? "● stops here" : "Stop here");
    this.brk.setAttribute("aria-pressed", String(known !== undefined));
    this.brk.title = known ? `Breakpoint ${known.number}: click to remove it` : `Stop every call of ${row.name} before its first line`;
  }

  private toggleBreakpoint(): void {
    const row = this.state.row();
    if (!row || !this.breakpoints) return;
    void this.breakpoints.toggle({ where: State.body(row) }).then((problem) => text(this.note, problem));
  }

  private row(item: CallRow, unit: Unit, tabStop: boolean, index: number): HTMLElement {
    const selected = item.id === this.state.selection.call;
    const gap = (ns: number | null): string => (ns === null ? "–" : inUnit(ns, unit));
    const overview = this.state.overview;
    const decimals = (overview?.end_ns ?? 0) > 1e12 ? 1 : 3;
    return h(
      "tr",
      { class: selected ? "sel" : "", "data-call": item.id, "data-focus": `call-${item.id}`, tabindex: tabStop ? 0 : -1, "aria-selected": String(selected), "aria-rowindex": index + 1, role: "row" },
      h("td.c-id", {}, item.kind === "gradient" ? `∇ #${item.id}` : `#${item.id}`),
      h("td.c-start", {}, (item.start_ns / 1e9).toFixed(decimals)),
      h("td.c-thread.l", {}, this.state.threadName(item.thread)),
      h("td.c-wait", {}, item.wait_ns === null ? "–" : waited(item.wait_ns, overview?.resolution_ns ?? 0, overview?.gil ?? null, (ns) => inUnit(ns, unit))),
      h("td.c-held", {}, gap(item.held_ns)),
      h("td.c-released", {}, gap(item.released_ns)),
      h("td.c-duration", {}, gap(item.duration_ns)),
      h("td.c-status.l", {}, statusOf(item, this.state)),
    );
  }

  private click(event: MouseEvent): void {
    const id = (event.target as HTMLElement).closest<HTMLElement>("tr[data-call]")?.dataset["call"];
    if (id) this.choose(Number(id));
  }

  private choose(call: number): void {
    this.shownCall = call;
    this.state.select({ call });
    this.state.open("call");
    this.body.querySelector<HTMLElement>(`tr[data-call="${call}"]`)?.focus({ preventScroll: true });
  }

  focusTable(): void {
    this.body.querySelector<HTMLElement>('tr[tabindex="0"]')?.focus();
  }

  private onKey(event: KeyboardEvent): void {
    const id = (event.target as HTMLElement).closest<HTMLElement>("tr[data-call]")?.dataset["call"];
    if (!id || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (step !== undefined || event.key === "Home" || event.key === "End") {
      event.preventDefault();
      event.stopPropagation();
      const index = this.indexOf(Number(id));
      const to = event.key === "Home" ? 0 : event.key === "End" ? this.total - 1 : Math.min(Math.max(index + (step ?? 0), 0), this.total - 1);
      void this.moveTo(to);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      event.stopPropagation();
      this.choose(Number(id));
    }
  }

  private async moveTo(index: number): Promise<void> {
    this.scroller.scrollTop = scrollTo(index, this.total, ROW, this.scroller.scrollTop, this.box());
    const page = Math.floor(index / PAGE);
    if (!this.pages.has(page)) {
      const { result } = await this.source.ask("calls", { ...this.query(), offset: page * PAGE, limit: PAGE });
      this.pages.set(page, result.rows);
    }
    const row = this.pages.get(page)?.[index % PAGE];
    if (!row) return;
    this.paint();
    this.choose(row.id);
  }

  private indexOf(id: number): number {
    for (const [page, rows] of this.pages) {
      const at = rows.findIndex((row) => row.id === id);
      if (at >= 0) return page * PAGE + at;
    }
    return 0;
  }

  private sortBy(event: MouseEvent): void {
    const column = (event.target as HTMLElement).closest<HTMLElement>("[data-column]")?.dataset["column"];
    if (!column) return;
    const first = column !== "id" && column !== "start";
    if (this.sort.column !== column) this.sort = { column, descending: first };
    else if (this.sort.descending === first && column !== "id") this.sort.descending = !first;
    else this.sort = { column: "id", descending: column === "id" && !this.sort.descending };
    this.changed();
  }
}
