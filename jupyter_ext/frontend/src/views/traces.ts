// The Traces tab: why the selected function was traced as often as it was, and what would have saved a graph.
import type { LedgerRow, TracesPage } from "../data/protocol";
import type { DataSource } from "../data/source";
import { clear, h, keepFocus, prose } from "../dom";
import { int, plural, time } from "../format";
import type { State } from "../state";
import { note } from "./call";

export class TracesPane {
  readonly element = h("div.detail.d-traces");
  private shown = "";
  private asked = 0;

  constructor(
    private readonly state: State,
    private readonly source: DataSource,
    private readonly goto: (file: string, line: number) => void,
    private readonly visible: () => boolean,
    signal: AbortSignal,
  ) {
    state.on(["selection", "tab", "overview", "ledger"], () => this.update(), signal);
  }

  /** The function of the selection: itself, or the one that a node was traced in. */
  private row(): LedgerRow | undefined {
    let row = this.state.row();
    while (row && row.type !== "function") row = row.parent === null ? undefined : this.state.row(row.parent);
    return row;
  }

  private update(): void {
    if (!this.visible()) return;
    const row = this.row();
    const key = `${row?.key} ${this.state.overview?.revision}`;
    if (key === this.shown) return;
    this.shown = key;
    if (!row || row.function === null || row.function < 0) {
      clear(this.element, note("Select a function in the ledger: its graph traces show here, each with its reason."));
      return;
    }
    const asked = ++this.asked;
    this.source
      .ask("traces", { function: row.function })
      .then(({ result }) => asked === this.asked && keepFocus(this.element, () => this.paint(row, result)))
      .catch((error: Error) => asked === this.asked && clear(this.element, note(error.message)));
  }

  private paint(row: LedgerRow, page: TracesPage | null): void {
    if (!page?.rows.length) {
      const why = row.kind === "" && row.traced === 0 ? "It was traced before the recording began, or not at all." : "It was not traced while recording.";
      clear(this.element, note(`No graph trace of \`${row.name}\`. ${why}`));
      return;
    }
    const place = h("button.lk", { type: "button", "data-focus": "place" }, page.place);
    place.addEventListener("click", () => row.file && row.line && this.goto(row.file, row.line));
    const total = page.rows.length + page.hidden;
    const spent = page.rows.reduce((sum, trace) => sum + trace.duration_ns, 0);
    clear(
      this.element,
      h("div.shead.thead", {}, h("b", {}, page.name), page.place ? place : null, h("span", {}, `${plural(total, "graph trace")}${page.hidden ? `, ${int(page.hidden)} in the middle not shown` : ""}, ${time(spent)}`)),
      h(
        "table.grid.traces",
        {},
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "#"), h("th.l", { scope: "col" }, "traced for, and why"), h("th", { scope: "col" }, "took"), h("th", { scope: "col", title: "runs that Python started; – where C++ starts them, which is not seen" }, "runs"))),
        h("tbody", {}, ...page.rows.map((trace) => this.trace(trace))),
      ),
      page.rows.some((trace) => trace.runs === null && !trace.error) ? h("p.dim.gcap", {}, "runs –: Python started none; runs inside another graph, tf.data or a Session are not seen.") : null,
    );
  }

  private trace(trace: TracesPage["rows"][number]): HTMLElement {
    const said = trace.said.map(([kind, text]) => h("p", { class: `t-${kind}` }, ...prose(text)));
    const nodes = trace.nodes.flatMap((node, i) => {
      const link = h("button.lk", { type: "button" }, node.name);
      link.addEventListener("click", () => this.state.select({ key: node.key }));
      return [i ? ", " : "", link, ` ${plural(node.calls, "call")}`];
    });
    return h(
      "tr",
      {},
      h("td", {}, trace.ordinal),
      h(
        "td.l",
        {},
        h("code.signature", {}, trace.signature),
        trace.object === null ? null : h("small", {}, ` of tf.function object ${trace.object}`),
        ...said,
        nodes.length ? h("p.dim", {}, "holds ", ...nodes, trace.more_nodes ? ` and ${int(trace.more_nodes)} more nodes` : "") : null,
      ),
      h("td", {}, time(trace.duration_ns)),
      h("td", {}, trace.runs === null ? "–" : int(trace.runs)),
    );
  }
}
