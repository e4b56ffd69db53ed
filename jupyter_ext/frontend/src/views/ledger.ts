// The ledger: traced functions with their nodes as a tree table, what was traced beside what ran.
import type { LedgerRow } from "../data/protocol";
import { breakable, clear, h, keepFocus, onPress, prose, text } from "../dom";
import { matcher } from "../glob";
import { int, inUnit, percent, time, unitOf, type Unit } from "../format";
import type { State } from "../state";

type Column = "name" | "traced" | "runs" | "calls" | "errors" | "total_ns" | "mean_ns" | "p95_ns" | "share";
const HEADS: [Column, string, string][] = [
  ["name", "name", "traced functions, their nodes, gradients of nodes"],
  ["traced", "traced", "how often TensorFlow built a graph of it"],
  ["runs", "runs", "how often Python started it; – where C++ starts it, which is not seen"],
  ["calls", "calls", "executions of the body"],
  ["errors", "err", "calls that an exception left"],
  ["total_ns", "total", "time of all calls together, their waits for the GIL included; of all runs"],
  ["mean_ns", "mean", "mean time in the body, or of a run"],
  ["p95_ns", "p95", "95 % took at most this"],
  ["share", "%", "share of the time of all calls: wait, held, released"],
];

const HEAD = 22;

/** A row's name, with its place where another row of its kind has the same name: four functions may be called `f`. */
export function nameOf(row: LedgerRow, rows: readonly LedgerRow[]): [name: string, place: string] {
  const twin = row.place && rows.some((other) => other !== row && other.type === row.type && other.call_kind === row.call_kind && other.name === row.name && other.place !== row.place);
  return [row.name, twin ? row.place : ""];
}

/** Rows in the order of the tree: children follow their parent. Sorted, there is no tree: the first row is the worst one. */
export function arrange(
  rows: readonly LedgerRow[],
  filter: string,
  sort: { column: Column; descending: boolean } | null,
  closed: ReadonlySet<string>,
): LedgerRow[] {
  const wanted = filter.trim();
  const match = matcher(wanted);
  const matches = (row: LedgerRow): boolean =>
    match([row.name, row.title.split(" (")[0]!, row.place, row.kind], `${row.name} ${row.kind} ${row.place} ${row.severity ?? ""}`);
  const children = new Map<string | null, LedgerRow[]>();
  for (const row of rows) {
    const list = children.get(row.parent);
    if (list) list.push(row);
    else children.set(row.parent, [row]);
  }
  const keep = new Map<string, boolean>();
  const kept = (row: LedgerRow, above: boolean): boolean => {
    const own = above || matches(row);
    const below = (children.get(row.key) ?? []).map((child) => kept(child, own));
    keep.set(row.key, own || below.includes(true));
    return keep.get(row.key)!;
  };
  for (const row of children.get(null) ?? []) kept(row, false);
  const result: LedgerRow[] = [];
  const walk = (parent: string | null): void => {
    for (const row of children.get(parent) ?? []) {
      if (!keep.get(row.key)) continue;
      result.push(row);
      if (sort || !closed.has(row.key) || wanted) walk(row.key);
    }
  };
  walk(null);
  if (!sort) return result;
  const value = (row: LedgerRow): number | string | null => (sort.column === "name" ? row.name.toLowerCase() : (row[sort.column] ?? null));
  return result.sort((a, b) => {
    const x = value(a);
    const y = value(b);
    if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1;
    const order = x < y ? -1 : x > y ? 1 : 0;
    return sort.descending ? -order : order;
  });
}

export class LedgerView {
  readonly element: HTMLElement;
  readonly filter = h("input", { type: "text", placeholder: "filter", "aria-label": "Filter the ledger", spellcheck: false, "data-focus": "filter" });
  private readonly body = h("tbody");
  private readonly headRow = h("tr");
  private readonly status = h("p.empty");
  private readonly box = h("div.lgbox");
  private readonly why = h("div.why", { role: "status", "aria-label": "Why the selected row is marked", tabindex: 0, hidden: true });
  private sort: { column: Column; descending: boolean } | null = null;
  private readonly closed = new Set<string>();
  /** Rows that were here before, and whether they held the person's bodies. */
  private readonly known = new Map<string, boolean>();
  private shown: LedgerRow[] = [];

  constructor(
    private readonly state: State,
    signal: AbortSignal,
  ) {
    const table = h("table.grid.ledger", { role: "treegrid", "aria-label": "Ledger: traced functions and nodes" }, h("thead", {}, this.headRow), this.body);
    this.box.append(table, this.status);
    this.element = h(
      "section.lg",
      { "aria-label": "Ledger" },
      h("div.sh", {}, h("h3", {}, "Ledger"), h("label.filter", {}, h("kbd", { "aria-hidden": "true" }, "/"), this.filter)),
      this.box,
      this.why,
    );
    this.filter.addEventListener("input", () => this.paint(), { signal });
    this.filter.addEventListener("keydown", (event) => this.filterKey(event), { signal });
    onPress(this.body, "data-key", (event) => this.click(event), signal);
    this.body.addEventListener("keydown", (event) => this.key(event), { signal });
    this.headRow.addEventListener("click", (event) => this.sortBy(event), { signal });
    state.on(["ledger", "selection"], () => this.paint(), signal);
    this.paint();
  }

  private paint(): void {
    const own = new Set(this.state.ledger.rows.filter((row) => row.type === "node" && row.origin === "user").map((row) => row.parent));
    for (const row of this.state.ledger.rows) {
      // What TensorFlow made for itself is there, but folded; until a body of the person's turns up in it.
      if (own.has(row.key) && !this.known.get(row.key)) this.closed.delete(row.key);
      else if (row.type === "function" && row.origin === "tensorflow" && !this.known.has(row.key)) this.closed.add(row.key);
      this.known.set(row.key, own.has(row.key));
    }
    this.shown = arrange(this.state.ledger.rows, this.filter.value, this.sort, this.closed);
    const unit = unitOf(this.state.ledger.rows.map((row) => row.mean_ns));
    const totals = unitOf(this.state.ledger.rows.map((row) => row.total_ns));
    const largest = Math.max(1e-9, ...this.state.ledger.rows.map((row) => row.share ?? 0));
    const children = new Set(this.state.ledger.rows.map((row) => row.parent));
    const tabStop = this.shown.some((row) => row.key === this.state.selection.key) ? this.state.selection.key : this.shown[0]?.key;
    keepFocus(this.element, () => {
      clear(
        this.headRow,
        ...HEADS.map(([column, name, title]) => {
          const on = this.sort?.column === column;
          const unitName = column === "mean_ns" || column === "p95_ns" ? ` ${unit.name}` : column === "total_ns" ? ` ${totals.name}` : "";
          const button = h("button.hd", { type: "button", title, "data-column": column, "data-focus": `ledger-${column}` }, name, unitName && h("span.unit", {}, unitName), on ? h("u", {}, this.sort!.descending ? "▾" : "▴") : null);
          return h("th", { scope: "col", class: column === "name" ? "l" : column === "share" ? "l c-share" : `c-${column}`, "aria-sort": on ? (this.sort!.descending ? "descending" : "ascending") : null }, button);
        }),
      );
      clear(this.body, ...this.shown.map((row) => this.row(row, unit, totals, largest, children.has(row.key), row.key === tabStop)));
    });
    this.paintWhy();
    this.reveal();
    this.status.hidden = this.shown.length > 0;
    const rows = this.state.ledger.rows.length;
    text(this.status, rows ? "Nothing matches the filter." : "No tf.function and no py_function was seen yet.");
  }

  /** Brings the row of a new selection into sight, wherever it was made; what arrives later moves nothing. */
  private reveal(): void {
    const { key } = this.state.selection;
    if (key === this.revealed || !this.box.clientHeight) return;
    this.revealed = key;
    const row = key === null ? null : this.body.querySelector(`tr[data-key="${CSS.escape(key)}"]`)?.getBoundingClientRect();
    if (!row) return;
    const box = this.box.getBoundingClientRect();
    if (row.top < box.top + HEAD) this.box.scrollTop -= box.top + HEAD - row.top;
    else if (row.bottom > box.bottom) this.box.scrollTop += row.bottom - box.bottom;
  }
  private revealed: string | null = null;

  /** Why the selected row is marked, in words: a mark alone says nothing. */
  private paintWhy(): void {
    const row = this.state.row();
    const why = row?.severity ? row.why : [];
    this.why.hidden = !why.length;
    if (this.why.textContent === why.join("")) return;
    clear(this.why, ...why.slice(0, 4).map((line) => h("p", { title: line }, ...prose(line))), why.length > 4 ? h("p.dim", {}, `and ${why.length - 4} more`) : null);
  }

  private row(row: LedgerRow, unit: Unit, totals: Unit, largest: number, parent: boolean, tabStop: boolean): HTMLElement {
    const selected = row.key === this.state.selection.key;
    const flat = this.sort !== null;
    const open = flat || !this.closed.has(row.key) || this.filter.value !== "";
    const letter = row.severity === "error" ? "E" : row.severity === "warning" ? "W" : row.severity === "note" ? "N" : null;
    const why = row.why.join("\n");
    const numbers = [
      row.mean_ns === null ? "" : `mean ${time(row.mean_ns)}`,
      row.p95_ns === null ? "" : `p95 ${time(row.p95_ns)}`,
      row.total_ns ? `in all ${time(row.total_ns)}` : "",
      row.share === null ? "" : `${percent(row.share)} % of the time of all calls`,
    ].filter(Boolean);
    const title = [row.title, row.place, row.site ? `called at ${row.site}` : "", ...numbers, why].filter(Boolean).join("\n");
    const dash = (value: number | null): string => (value === null ? "–" : int(value));
    const isFunction = row.type === "function";
    const [name, place] = this.name(row, flat);
    return h(
      "tr",
      {
        class: [isFunction ? "fn" : "nd", selected ? "sel" : "", row.severity ? `sv-${row.severity}` : ""].join(" "),
        role: "row",
        "data-key": row.key,
        "data-focus": `row-${row.key}`,
        tabindex: tabStop ? 0 : -1,
        "aria-level": flat ? 1 : row.level + 1,
        "aria-selected": String(selected),
        "aria-expanded": parent && !flat ? String(open) : null,
        title,
      },
      h(
        "td.nm.l",
        { class: letter ? "nm l sv" : "nm l" },
        h("span.in", { class: `in l${flat ? 0 : row.level}` }, h("span.tw", { "aria-hidden": "true" }, parent && row.level === 0 && !flat ? (open ? "▾" : "▸") : ""), h("b", {}, breakable(name)), place ? " " : null, place ? h("span.pl", {}, place) : null, row.kind ? h("small", {}, ` ${row.kind}`) : null),
        letter ? h("span.sev", { class: `sev sev-${letter}`, title: why, "aria-label": `${row.severity}: ${why}`, role: "img" }, letter) : null,
      ),
      h("td.c-traced", {}, isFunction && row.traced !== null ? `${int(row.traced)}×` : ""),
      h("td.c-runs", {}, isFunction && row.kind !== "graph" && (row.runs !== null || row.traced !== null) ? (row.runs === null ? "–" : `${int(row.runs)}×`) : ""),
      h("td.c-calls", {}, isFunction ? "" : dash(row.calls)),
      h("td.c-errors", {}, row.errors ? h("span.err", {}, `✕ ${int(row.errors)}`) : isFunction ? "" : dash(row.errors)),
      h("td.c-total_ns", {}, row.total_ns == null ? "" : inUnit(row.total_ns, totals)),
      h("td.c-mean_ns", {}, row.mean_ns === null ? (isFunction ? "" : "–") : inUnit(row.mean_ns, unit)),
      h("td.c-p95_ns", {}, row.p95_ns === null ? (isFunction ? "" : "–") : inUnit(row.p95_ns, unit)),
      h("td.c-share", {}, row.share === null ? "" : this.share(row, largest)),
    );
  }

  /** Without the tree around it a gradient says whose it is. */
  private name(row: LedgerRow, flat: boolean): [name: string, place: string] {
    if (row.call_kind !== "gradient") return nameOf(row, this.state.ledger.rows);
    return [flat ? `∇ ${this.state.row(row.parent)?.name ?? "gradient"}` : "∇ gradient", ""];
  }

  private share(row: LedgerRow, largest: number): HTMLElement {
    const bar = h("span.bar", { "aria-hidden": "true" });
    const full = ((row.share ?? 0) / largest) * 100;
    const parts = row.parts;
    const add = (kind: string, part: number): void => {
      if (part > 0) bar.append(h("i", { class: kind, "data-w": part }));
    };
    if (parts) {
      const total = parts.wait_ns + parts.body_ns || 1;
      const released = parts.released_ns ?? 0;
      const inside = parts.inside_ns ?? 0;
      add("w", ((parts.wait_ns + inside) / total) * full);
      add(row.call_kind === "gradient" ? "g" : "h", ((parts.body_ns - released - inside) / total) * full);
      add("r", (released / total) * full);
    } else add(row.call_kind === "gradient" ? "g" : "h", full);
    for (const part of bar.children) (part as HTMLElement).style.width = `${(part as HTMLElement).dataset["w"]}%`;
    return h("span.share", {}, bar, h("span.pc", {}, percent(row.share ?? 0)));
  }

  private rowAt(event: Event): { row: LedgerRow; element: HTMLElement } | null {
    const element = (event.target as HTMLElement).closest<HTMLElement>("tr[data-key]");
    const row = element && this.shown.find((item) => item.key === element.dataset["key"]);
    return row ? { row, element: element! } : null;
  }

  private click(event: MouseEvent): void {
    const found = this.rowAt(event);
    if (!found) return;
    if ((event.target as HTMLElement).closest(".tw")?.textContent) this.toggle(found.row);
    this.choose(found.row);
    this.focus(found.row.key);
  }

  private choose(row: LedgerRow): void {
    this.state.select({ key: row.key });
  }

  private toggle(row: LedgerRow, open?: boolean): void {
    if (open ?? this.closed.has(row.key)) this.closed.delete(row.key);
    else this.closed.add(row.key);
    this.paint();
  }

  private focus(key: string): void {
    this.body.querySelector<HTMLElement>(`tr[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: false });
  }

  private key(event: KeyboardEvent): void {
    const found = this.rowAt(event);
    if (!found || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = this.shown.indexOf(found.row);
    const go = (to: number): void => {
      const row = this.shown[Math.min(Math.max(to, 0), this.shown.length - 1)];
      if (!row) return;
      this.choose(row);
      this.focus(row.key);
    };
    const has = this.state.ledger.rows.some((row) => row.parent === found.row.key);
    switch (event.key) {
      case "ArrowDown": go(at + 1); break;
      case "ArrowUp": go(at - 1); break;
      case "Home": go(0); break;
      case "End": go(this.shown.length - 1); break;
      case "ArrowRight": if (has && this.closed.has(found.row.key)) this.toggle(found.row, true); else if (has) go(at + 1); break;
      case "ArrowLeft": if (has && !this.closed.has(found.row.key)) this.toggle(found.row, false); else if (found.row.parent) go(this.shown.findIndex((row) => row.key === found.row.parent)); break;
      case "Enter": case " ": this.choose(found.row); this.onOpen?.(); break;
      default: return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
  /** Enter on a row: the panel moves on to its calls. */
  onOpen: (() => void) | null = null;

  private filterKey(event: KeyboardEvent): void {
    if (event.key === "Escape") {
      this.filter.value = "";
      this.paint();
      this.focusTable();
    } else if (event.key === "Enter" || event.key === "ArrowDown") {
      event.preventDefault();
      this.focusTable();
    }
  }

  focusTable(): void {
    this.body.querySelector<HTMLElement>('tr[tabindex="0"]')?.focus();
  }

  private sortBy(event: MouseEvent): void {
    const column = (event.target as HTMLElement).closest<HTMLElement>("[data-column]")?.dataset["column"] as Column | undefined;
    if (!column) return;
    // Largest first, smallest first, the program's own order.
    const descending = column !== "name";
    if (this.sort?.column !== column) this.sort = { column, descending };
    else if (this.sort.descending === descending) this.sort = { column, descending: !descending };
    else this.sort = null;
    this.paint();
    this.box.scrollTop = 0;
  }
}
