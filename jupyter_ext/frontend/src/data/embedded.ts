// Data that are in the page: the HTML report. Answers the same questions as a kernel, from typed arrays.
import { between, bins, callsOf, ERROR, GRADIENT, take, type Calls } from "./columns";
import {
  bytesOf,
  decodeArrays,
  type Answer,
  type ArrayPlace,
  type Arrays,
  type CallDetail,
  type CallRow,
  type CallsPage,
  type CallsQuery,
  type Compared,
  type Finding,
  type GilPage,
  type Ledger,
  type Looked,
  type Method,
  type Overview,
  type Questions,
  type SourcePage,
  type Status,
  type Trace,
  type TracesPage,
  type Trend,
  type Viewport,
} from "./protocol";
import { Folds } from "../timeline/folds";
import type { DataSource, Link, Place } from "./source";

/** What pyfunc_debug/report/html.py embeds. */
export interface Embedded {
  overview: Overview;
  ledger: Ledger;
  traces: Trace[];
  details: Record<string, CallDetail>;
  failures: Record<string, string>;
  odd?: Record<string, string>;
  sources: Record<string, SourcePage>;
  explained: Record<string, TracesPage>;
  /** What is known of a node beside its calls. */
  /** Scalars over calls, by group of nodes and kind of call. */
  trends?: Record<string, Record<string, Trend>>;
  nodes: Record<string, Pick<CallDetail, "node_kind" | "trace_stack" | "body" | "function">>;
  /** Why the values of a call are not here. */
  left_out?: string;
  findings: Finding[] | null;
  gil: GilPage;
  trimmed: string;
  arrays: Record<string, ArrayPlace>;
}

const MAX_CALLS = 6000;
const STATUS: Record<number, Status> = { 0: "ok", 1: "error", 2: "running", 4: "interrupted" };

/** Reads base64 text of a deflated container: 4 bytes length of the JSON, the JSON, the arrays. */
export async function decodeContainer<T extends { arrays: Record<string, ArrayPlace> }>(text: string): Promise<{ data: T; arrays: Arrays }> {
  const packed = bytesOf(text.trim());
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const data = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length))) as T;
  return { data, arrays: decodeArrays(data.arrays, [bytes.subarray(4 + length)]) };
}

export class EmbeddedSource implements DataSource {
  readonly kind = "embedded";
  readonly trimmed: string;
  private readonly calls: Calls;
  private readonly folds: Folds;
  private order: { key: string; places: Int32Array } = { key: "", places: new Int32Array() };

  constructor(
    private readonly data: Embedded,
    private readonly arrays: Arrays,
  ) {
    this.trimmed = data.trimmed;
    this.calls = callsOf(arrays);
    this.folds = new Folds(data.overview.folds);
  }

  async ask<M extends Method>(method: M, params: Questions[M]["params"]): Promise<Answer<M>> {
    return this.answer(method, params) as Answer<M>;
  }

  onRevision(): void {}
  onShow(_callback: (place: Place) => void): void {}
  onLink(callback: (link: Link) => void): void {
    callback({ state: "static" });
  }

  private answer(method: Method, params: unknown): { result: unknown; arrays: Arrays } {
    const data = this.data;
    switch (method) {
      case "overview":
        return {
          result: data.overview,
          arrays: { waiting: this.arrays["waiting"]!, errors: this.arrays["errors"]! },
        };
      case "ledger":
        return { result: data.ledger, arrays: {} };
      case "findings":
        return { result: { findings: data.findings }, arrays: {} };
      case "gil":
        return { result: data.gil, arrays: {} };
      case "source":
        return { result: this.sourceOf((params as { file: string }).file), arrays: {} };
      case "traces":
        return { result: this.tracesOf((params as { function: number }).function), arrays: {} };
      case "call":
        return { result: this.detail((params as { id: number }).id), arrays: {} };
      case "value":
        return { result: this.looked(params as Questions["value"]["params"]), arrays: {} };
      case "compare":
        return { result: this.compared(params as Questions["compare"]["params"]), arrays: {} };
      case "calls":
        return { result: this.page(params as CallsQuery), arrays: {} };
      default:
        return this.viewport(params as Questions["timeline"]["params"]);
    }
  }

  /** A value as far as the report holds it: its thumbnail, and of a batch the first images. */
  private looked({ call, side, position }: Questions["value"]["params"]): Looked | null {
    const detail = this.data.details[String(call)];
    const found = detail?.values.find((value) => value.role.replace("grad ", "") === side && value.position === position && value.role.startsWith("grad ") === (detail.kind === "gradient"));
    if (!found) return null;
    const { path, dtype, shape, text, kept, picture, table } = found;
    const frames = found.frames ?? [];
    return { path, dtype, shape, text, kept, picture: frames.length ? null : picture, frames, count: frames.length ? (shape?.[0] ?? frames.length) : 0, table };
  }

  /** Two calls by what the report tells of them. */
  private compared({ left, right }: Questions["compare"]["params"]): Compared | null {
    const details = [left, right].map((id) => this.detail(id));
    if (details.some((one) => one === null)) return null;
    const missing = details.find((one) => one!.trimmed);
    if (missing) throw new Error(`This report had no room for the values of call #${missing.id}.`);
    const own = details.map((one) => one!.values.filter((value) => !value.role.startsWith("grad ") || one!.kind === "gradient"));
    const keys = [...new Set(own.flat().map((value) => `${value.role}:${value.position}`))];
    return {
      left,
      right,
      rows: keys.map((key) => {
        const pair = own.map((values) => values.find((value) => `${value.role}:${value.position}` === key) ?? null);
        const some = pair.find((value) => value !== null)!;
        const differs = pair.some((value) => value === null) || pair[0]!.text !== pair[1]!.text;
        return { role: some.role, path: some.path, texts: pair.map((value) => value?.text ?? null), pictures: pair.map((value) => value?.picture ?? null), equal: differs ? false : null, largest: null, difference: null };
      }),
    };
  }

  private tracesOf(number: number): TracesPage | null {
    const page = this.data.explained[String(number)];
    if (!page && this.data.ledger.rows.some((row) => row.key === `f${number}` && row.traced)) {
      throw new Error("This report had no room for the graph traces of this function.");
    }
    return page ?? null;
  }

  private sourceOf(file: string): SourcePage | null {
    const page = this.data.sources[file];
    const known = this.data.ledger.files.find(([path]) => path === file);
    if (!page && known) throw new Error(`This report had no room for the text of ${known[1]}.`);
    return page ?? null;
  }

  private viewport({ start_ns, end_ns, width }: Questions["timeline"]["params"]): { result: Viewport; arrays: Arrays } {
    const places = between(this.calls, start_ns, end_ns);
    const visible = take(this.calls, places);
    const traces = this.data.traces.filter((t) => t.start_ns <= end_ns && t.start_ns + t.duration_ns >= start_ns);
    const result: Viewport = {
      start_ns,
      end_ns,
      calls: places.length,
      measured: this.data.overview.gil !== null,
      traces,
      runs_merged: false,
      mode: "calls",
    };
    const arrays: Arrays = {};
    for (const [name, array] of Object.entries(this.arrays)) if (name.startsWith("run_")) arrays[name] = array;
    if (places.length <= MAX_CALLS) return { result, arrays: { ...arrays, ...columnsOf(visible) } };
    const threads = [...new Set(visible.thread)].sort((a, b) => a - b);
    const lanes = new Map(threads.map((thread, i) => [thread, i]));
    const marks: number[] = [];
    for (let i = 0; i < visible.length; i++) if (visible.flags[i]! & ERROR) marks.push(i);
    const step = Math.max(1, Math.ceil(marks.length / 400));
    const shown = take(visible, Int32Array.from(marks.filter((_, i) => i % step === 0)));
    for (const [name, array] of Object.entries(columnsOf(shown))) arrays[`mark_${name}`] = array;
    arrays["bins"] = bins(visible, lanes, this.folds.at(start_ns), this.folds.at(end_ns), width, this.folds);
    return { result: { ...result, mode: "bins", threads, width, marks_hidden: Math.max(0, marks.length - 400) }, arrays };
  }

  private page(query: CallsQuery): CallsPage {
    const places = this.sorted(query);
    const offset = Math.max(0, query.offset);
    const index = query.find == null ? -1 : places.findIndex((i) => this.calls.id[i] === query.find);
    const rows = [...places.subarray(offset, offset + Math.min(query.limit, 1000))].map((i) => this.row(i));
    return { total: places.length, offset, index: index < 0 ? null : index, rows };
  }

  private sorted(query: CallsQuery): Int32Array {
    const key = JSON.stringify([query.nodes, query.kind, query.status, query.sort, query.descending]);
    if (this.order.key === key) return this.order.places;
    const { calls } = this;
    const nodes = query.nodes && new Set(query.nodes);
    const found: number[] = [];
    for (let i = 0; i < calls.length; i++) {
      if (nodes && !nodes.has(calls.node[i]!)) continue;
      if (query.kind && (calls.flags[i]! & GRADIENT) !== (query.kind === "gradient" ? 1 : 0)) continue;
      if (query.status && STATUS[calls.flags[i]! >> 1] !== query.status) continue;
      found.push(i);
    }
    const places = Int32Array.from(found);
    const sort = query.sort;
    if (sort !== "id") {
      const value = (i: number): number => {
        if (sort === "duration") return calls.end[i]! - calls.start[i]! - calls.stopped[i]!;
        if (sort === "status") return calls.flags[i]! >> 1;
        if (sort === "thread" || sort === "start" || sort === "wait" || sort === "held" || sort === "released") {
          return calls[sort][i]!;
        }
        return i;
      };
      const sign = query.descending ? -1 : 1;
      const keys = Float64Array.from(places, (i) => {
        const number = value(i);
        return Number.isNaN(number) ? Infinity : sign * number;
      });
      const at = Int32Array.from(places.keys()).sort((a, b) => keys[a]! - keys[b]! || a - b);
      this.order = { key, places: at.map((i) => places[i]!) };
    } else {
      this.order = { key, places: query.descending ? places.reverse() : places };
    }
    return this.order.places;
  }

  private row(i: number): CallRow {
    const { calls } = this;
    const id = calls.id[i]!;
    const end = calls.end[i]!;
    return {
      id,
      node: calls.node[i]!,
      kind: calls.flags[i]! & GRADIENT ? "gradient" : "forward",
      thread: calls.thread[i]!,
      start_ns: calls.start[i]!,
      duration_ns: known(Math.max(0, end - calls.start[i]! - calls.stopped[i]!)),
      wait_ns: known(calls.wait[i]!),
      held_ns: known(calls.held[i]!),
      released_ns: known(calls.released[i]!),
      status: STATUS[calls.flags[i]! >> 1] ?? "ok",
      failure: this.data.failures[String(id)] ?? null,
      odd: this.data.odd?.[String(id)] ?? null,
    };
  }

  /** Of a call that the report had no room for, only what the columns tell. */
  private detail(id: number): CallDetail | null {
    const kept = this.data.details[String(id)];
    if (kept) return { ...this.data.nodes[String(kept.node)], ...kept, trends: this.data.trends?.[`${kept.group}:${kept.kind}`] ?? {} } as CallDetail;
    const place = this.calls.id.indexOf(id);
    if (place < 0) return null;
    const row = this.row(place);
    const { overview } = this.data;
    const group = overview.groups[String(row.node)] ?? row.node;
    const query: CallsQuery = {
      nodes: Object.keys(overview.groups).map(Number).filter((node) => overview.groups[String(node)] === group),
      kind: row.kind,
      sort: "id",
      descending: false,
      offset: 0,
      limit: 0,
    };
    const order = this.sorted(query);
    const at = order.indexOf(place);
    const neighbour = (i: number): number | null => (i >= 0 && i < order.length ? this.calls.id[order[i]!]! : null);
    const node = this.data.nodes[String(row.node)];
    return {
      ...row,
      group,
      name: overview.names[String(row.node)] ?? `node ${row.node}`,
      node_kind: node?.node_kind ?? null,
      thread_name: overview.threads.find((thread) => thread.id === row.thread)?.name ?? `thread ${row.thread}`,
      end_ns: known(this.calls.end[place]!),
      stopped_ns: this.calls.stopped[place]!,
      cpu_ns: null,
      forward: null,
      tape: null,
      gradients: [],
      previous: neighbour(at - 1),
      next: neighbour(at + 1),
      run: null,
      runs: [],
      gil:
        row.wait_ns === null && row.held_ns === null
          ? null
          : {
              grade: overview.gil ?? "",
              wait_ns: row.wait_ns,
              held_ns: row.held_ns,
              released_ns: row.released_ns,
              reacquire_ns: known(this.calls.reacquire[place]!),
              blame: [],
            },
      values: [],
      failure: row.failure ? { type: row.failure, message: "", traceback: "", frames: [] } : null,
      trace_stack: node?.trace_stack ?? [],
      body: node?.body ?? null,
      function: node?.function ?? null,
      notices: [],
      trimmed: this.data.left_out ?? "This report had no room for the values of this call.",
    };
  }
}

const known = (number: number): number | null => (Number.isNaN(number) ? null : number);

const columnsOf = (calls: Calls): Arrays => ({
  id: calls.id,
  node: calls.node,
  thread: calls.thread,
  flags: calls.flags,
  start: calls.start,
  end: calls.end,
  wait: calls.wait,
  held: calls.held,
  released: calls.released,
  reacquire: calls.reacquire,
  stopped: calls.stopped,
});


