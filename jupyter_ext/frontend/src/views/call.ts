// Everything about one call: times, values with their difference to the call before, gradients, stacks, failure.
import type { CallDetail, Delta, FrameLine, Status, Value } from "../data/protocol";
import type { DataSource } from "../data/source";
import { clear, h, keepFocus, prose, text } from "../dom";
import { int, plural, sig3, time, typeText, waited } from "../format";
import type { Breakpoints } from "../data/breakpoints";
import { State } from "../state";
import { copy, toEditor } from "./editor";
import { figure, histogram, sparkline } from "./figures";
import { Looks } from "./look";
import { byHand, noticed } from "./noticed";

const ROLES: Record<Value["role"], string> = { in: "in", out: "out", "grad in": "∇ in", "grad out": "∇ out" };

export class CallPane {
  readonly element = h("div.detail.d-call");
  private shown: number | null = null;
  private detail: CallDetail | null = null;
  private asked = 0;
  /** Why no breakpoint could be set from a call, also after the pane is drawn again. */
  private refused: { call: number; text: string } | null = null;
  private paintStopNext: () => void = () => {};

  constructor(
    private readonly state: State,
    private readonly source: DataSource,
    private readonly goto: (file: string, line: number) => void,
    private readonly breakpoints: Breakpoints | null,
    signal: AbortSignal,
  ) {
    this.looks = new Looks(source, (id) => this.select(id), signal);
    state.on(["selection", "overview"], () => this.update(), signal);
    breakpoints?.onChange(() => this.paintStopNext(), signal);
    this.update();
  }
  private readonly looks: Looks;
  private pinned: number | null = null;

  /** What can be done from a call. */
  private deeds(call: CallDetail): HTMLElement {
    const button = (name: string, title: string, press: () => void): HTMLButtonElement => {
      const made = h("button.btn.sm", { type: "button", title, "data-focus": `deed-${name}` }, name);
      made.addEventListener("click", press);
      return made;
    };
    const pin = button(this.pinned === call.id ? `pinned #${call.id}` : "Pin", "Marks this call: Compare in another call puts the two side by side", () => {
      this.pinned = this.pinned === call.id ? null : call.id;
      pin.textContent = this.pinned === call.id ? `pinned #${call.id}` : "Pin";
      pin.setAttribute("aria-pressed", String(this.pinned === call.id));
    });
    pin.setAttribute("aria-pressed", String(this.pinned === call.id));
    const pinned = this.pinned !== null && this.pinned !== call.id ? this.pinned : null;
    return h(
      "div.deeds",
      {},
      button(pinned ? `Compare with #${pinned}` : "Compare", "Values of two calls side by side", () => this.looks.compareWith(pinned)),
      pin,
      this.source.act && call.kind === "forward" ? button("Replay", "Runs the body again, on these inputs or others, or under the debugger", () => this.looks.replay()) : null,
      call.kind === "forward" && call.status !== "running" ? button("As a test", "A pytest file that runs the body on these inputs and asks for this outcome", () => this.looks.test(this.state.overview?.name ?? "")) : null,
    );
  }

  /** Where elements were not kept: how to keep them. */
  private notKept(call: CallDetail): HTMLElement | null {
    const own = call.values.filter((value) => value.role === "in" || value.role === "out");
    const some = own.some((value) => value.kept !== "full" && (value.shape === null || value.shape.length > 0));
    return !call.trimmed && (some || !own.length) && call.status !== "running" ? this.looks.keep(call) : null;
  }

  /** The call before or after, of the same node. */
  step(by: -1 | 1): void {
    const to = by < 0 ? this.detail?.previous : this.detail?.next;
    if (to != null) this.state.select({ call: to });
  }

  private update(): void {
    const { call } = this.state.selection;
    if (call === null) {
      this.shown = null;
      this.detail = null;
      this.element.setAttribute("aria-busy", "false");
      clear(this.element, ...this.empty());
      return;
    }
    // A call that has ended does not change any more, but its gradient calls and its successor may come.
    const settled = this.detail && this.detail.id === call && this.detail.status !== "running" && this.detail.next !== null;
    if (this.shown === call && settled) return;
    this.shown = call;
    const asked = ++this.asked;
    this.element.setAttribute("aria-busy", String(this.detail?.id !== call)); // what stands here is of another call
    this.source
      .ask("call", { id: call })
      .then(({ result }) => {
        if (asked !== this.asked) return;
        this.element.setAttribute("aria-busy", "false");
        if (JSON.stringify(result) === JSON.stringify(this.detail)) return;
        // From call to call of a node one compares what is in sight; another node is read from the top.
        if (result?.node !== this.detail?.node) this.element.scrollTop = 0;
        this.detail = result;
        this.looks.follow(result);
        this.state.span = result && { call, start: result.start_ns - (result.gil?.wait_ns ?? 0), end: result.end_ns ?? this.state.overview?.end_ns ?? result.start_ns };
        this.state.emit("view");
        keepFocus(this.element, () => clear(this.element, ...(result ? this.page(result) : [note(this.state.overview?.state === "recording" ? `Call #${call} has just begun${this.state.stopped ? " and is stopped: see Stop" : ""}. Its row is being written.` : `Call #${call} is not in this recording.`)])));
      })
      .catch((error: Error) => {
        if (asked !== this.asked) return;
        this.element.setAttribute("aria-busy", "false");
        if (this.detail?.id !== call) clear(this.element, note(error.message));
      });
  }

  private empty(): HTMLElement[] {
    const overview = this.state.overview;
    if (!overview) return [note("reading…")];
    if (this.state.stopped) return [note(`\`${this.state.stopped}\` is stopped, before the first row of this recording is written: see Stop.`)];
    if (overview.calls) return [note("Select a call in the timeline or in the table of calls: its inputs, outputs, gradients and stacks show here.")];
    const functions = this.state.ledger.rows.filter((row) => row.type === "function" && row.origin === "user");
    const live = overview.state === "recording";
    const words = functions.map((row) => `\`${row.name}\` (traced ${times(row.traced ?? 0)}, ${row.runs === null ? "runs not seen" : plural(row.runs, "run")})`);
    const verb = live ? "The cell runs" : "The recording holds";
    // A function that was traced before recording has no graph here that could tell.
    const without = functions.length > 0 && functions.every((row) => row.traced) && !this.state.ledger.rows.some((row) => row.type === "node");
    const nodes = this.state.ledger.rows.filter((row) => row.type === "node" && row.call_kind === "forward" && row.site);
    return [
      h(
        "div.none",
        {},
        h("p", {}, h("b", {}, live ? "No py_function ran yet." : "No py_function ran."), ...(words.length ? [` ${verb} `, ...prose(words.join(", ")), "."] : [])),
        live ? h("p.dim", {}, "Calls appear here as soon as one ends.") : h("p.dim", {}, without ? "The graphs that were traced while recording hold no py_function." : "Only nodes that are executed while recording have calls. Was the function called inside the recorded code?"),
        ...nodes.slice(0, 3).map((row) => h("p.dim", {}, h("code", {}, row.name), ` was built into a graph at ${shortSite(row.site!)}.`)),
      ),
    ];
  }

  private page(call: CallDetail): (HTMLElement | null)[] {
    return [
      this.head(call),
      call.failure && call.status !== "interrupted" ? failure(call, this.goto) : null,
      call.tape !== null && call.tape !== undefined
        ? h("p.warn", {}, h("b", {}, "Not its own gradient: "), `TensorFlow used the tape of call #${call.tape}, not of ${call.forward === null ? "its forward call" : `#${call.forward}`}. Exact gradients pair them right (`, h("code", {}, 'gradients="exact"'), ").")
        : null,
      byHand(call),
      this.deeds(call),
      call.trimmed ? note(call.trimmed) : this.values(call),
      this.notKept(call),
      ...noticed(call),
      this.looks.element,
      this.strip(call),
    ];
  }

  /** `tf.data 2 (TF-57)`: the lane that the timeline shows it in, and the thread. */
  private thread(call: CallDetail): string {
    const lane = this.state.threadName(call.thread);
    return lane === call.thread_name ? lane : `${lane} (${call.thread_name})`;
  }

  private head(call: CallDetail): HTMLElement {
    const link = (label: string, id: number): HTMLElement => {
      const button = h("button.lk", { type: "button", "data-focus": `to-${label}` }, label);
      button.addEventListener("click", () => this.select(id));
      return button;
    };
    const arrow = (key: "[" | "]", by: -1 | 1, to: number | null): HTMLElement => {
      const title = by < 0 ? "Previous call of this node" : "Next call of this node";
      const button = h("button.btn.sq", { type: "button", title, "aria-label": title, disabled: to === null, "data-focus": `step${key}` }, key);
      button.addEventListener("click", () => this.step(by));
      return button;
    };
    const where = call.run
      ? `${call.run.kind === "backward" ? "backward of " : ""}run ${call.run.id}${call.run.trace ? ` of graph trace ${call.run.trace}` : ""}`
      : call.runs.length > 1
        ? `one of ${call.runs.length} runs in flight`
        : "";
    return h(
      "div.chead",
      {},
      h(
        "div",
        {},
        h("b.ttl", {}, `${call.kind === "gradient" ? "∇ " : ""}${call.name} #${call.id}`),
        h("span", {}, this.thread(call)),
        where ? h("span.wide", {}, where) : null,
        statusOf(call, this.state),
        h("span.sp"),
        call.forward !== null ? link("forward call", call.forward) : null,
        ...(call.gradients.length ? [link(call.gradients.length > 1 ? `∇ gradient call (${call.gradients.length})` : "∇ gradient call", call.gradients[0]!)] : []),
        this.stopNext(call),
        this.editor(call),
        this.copyPlace(call),
        h("span.seg", {}, arrow("[", -1, call.previous), arrow("]", 1, call.next)),
      ),
      times_(call, this.state.overview?.resolution_ns ?? 0, this.state.unended(call.held_here ?? false)),
    );
  }

  /** To the line that failed, else to the body's first. */
  private editor(call: CallDetail): HTMLElement | null {
    const failed = call.failure?.frames[call.failure.frames.length - 1];
    const spot = failed ?? (call.body?.file ? { file: call.body.file, line: call.body.line, place: call.body.place } : null);
    return spot && toEditor({ file: spot.file, line: spot.line, name: spot.place.replace(/:\d+$/, "") }, this.source.kind === "kernel", "call-editor");
  }

  /** In a notebook: the line that leads here, for a cell or for somebody else. */
  private copyPlace(call: CallDetail): HTMLElement | null {
    if (this.source.kind !== "kernel") return null;
    const line = `%pyfunc_show ${call.id}`;
    const button = h("button.lk", { type: "button", title: `Copies ${line}`, "data-focus": "copy-place" }, "copy link");
    button.addEventListener("click", () => copy(line, button));
    return button;
  }

  /** A breakpoint that stops the next call of this node, once; it says so as long as there is one. */
  private stopNext(call: CallDetail): HTMLElement | null {
    const { breakpoints } = this;
    const row = this.state.rowOfNode(call.node, false);
    if (!breakpoints || !row) return null;
    const where = State.body(row), when = call.kind === "gradient" ? "gradient" : "before";
    const button = h("button.lk", { type: "button", "data-focus": "stop-here-next", title: `Stops the next call of ${row.name} before its first line, once` });
    this.paintStopNext = () => {
      const waits = breakpoints.all.some((one) => one.once && one.enabled && one.where === where && one.when === when);
      text(button, this.refused?.call === call.id ? this.refused.text : waits ? "the next call stops" : "stop here next time");
    };
    button.addEventListener("click", () => void breakpoints.add({ where, when, once: true }).then((problem) => {
      this.refused = problem ? { call: call.id, text: problem } : null;
      this.paintStopNext();
    }));
    this.paintStopNext();
    return button;
  }

  private select(id: number): void {
    void this.source.ask("call", { id }).then(({ result }) => {
      if (result) this.state.select({ call: id, key: this.state.rowOfNode(result.node, result.kind === "gradient")?.key ?? null });
    });
  }

  private values(call: CallDetail): HTMLElement {
    const { values } = call;
    const policy = this.state.overview?.options["values"];
    if (!values.length) {
      return note(policy === "none" ? "No values were kept." : call.status === "running" && this.state.overview?.state === "recording" ? "Values come when the call ends." : "No values are stored for this call.");
    }
    const against = call.previous === null ? "" : `#${call.previous}`;
    const rows: HTMLElement[] = [];
    let last = "";
    for (const value of values) {
      rows.push(valueRow(value, value.role !== last, call, () => this.looks.value(value)));
      last = value.role;
      if (value.table) rows.push(tableRow(value.table));
    }
    if (call.kind === "forward" && call.node_kind && call.node_kind !== "py_function") {
      rows.push(h("tr.first", {}, h("td.dir.l", {}, "∇"), h("td.l.dim", { colspan: 7 }, "no gradient: this op has none (", h("code", {}, call.node_kind), ")")));
    }
    return h(
      "table.grid.vals",
      { "aria-label": "Values" },
      h(
        "thead",
        {},
        h("tr", {}, h("th.l", { colspan: 2, scope: "colgroup" }, "value"), h("th.l.ty", { scope: "col" }, "type"), h("th.l", { scope: "col" }, "range"),
          h("th.mu", { scope: "col", title: "mean" }, "μ"), h("th.sd", { scope: "col", title: "standard deviation" }, "σ"), h("th.l.hs", { scope: "col" }, "histogram"),
          h("th", { scope: "col", title: against ? `largest absolute difference to call ${against}` : "there is no call before" }, against ? `max |Δ| to ${against}` : "")),
      ),
      h("tbody", {}, ...rows),
    );
  }

  private strip(call: CallDetail): HTMLElement | null {
    const pictures = call.values.filter((value) => value.picture);
    const at = (frame: FrameLine, current: boolean): HTMLElement => frameLine(frame.place, frame.file, frame.line, frame.function, current, this.goto);
    const body = call.body;
    const run = [
      body ? (body.file && body.line ? frameLine(body.place, body.file, body.line, body.function, true, this.goto) : plain("C", body.function)) : null,
      plain("C++", call.run || call.runs.length ? `executor, ${this.thread(call)}` : `TensorFlow, ${this.thread(call)}`),
    ];
    return h(
      "div.strip",
      {},
      pictures.length ? h("div.imgs", {}, ...pictures.slice(0, 8).map((value) => figure(value.picture!, value.path.startsWith(value.role) ? value.path : `${ROLES[value.role]} ${value.path}`, () => this.looks.value(value)))) : null,
      h(
        "div.stacks",
        {},
        h("div", {}, h("h4", {}, "At graph trace"), call.trace_stack.length ? h("ol", {}, ...call.trace_stack.slice(0, 12).map((frame, i) => at(frame, i === 0))) : h("p.dim", {}, "not known: made before recording, or not by your code")),
        h("div", {}, h("h4", {}, call.run ? `At run ${call.run.id}` : "At run"), h("ol", {}, ...run)),
      ),
    );
  }
}

/** How a call stands: `ok`, its exception, or that it is held. */
export function statusOf(call: { status: Status; held_here?: boolean; failure: { type: string } | string | null; odd?: string | null }, state: State): HTMLElement {
  if (call.status === "running") {
    const how = state.unended(call.held_here ?? false);
    return h(how === "stopped" ? "b.held" : "span", {}, how);
  }
  if (call.status === "interrupted") return h("span", { title: "a person ended it at a stop" }, "ended by hand");
  const failure = typeof call.failure === "string" ? call.failure : call.failure?.type;
  return call.status === "error" ? h("b.err", {}, `✕ ${failure ?? "error"}`) : call.odd ? h("span", { title: `${call.odd} is in what it returned` }, `${call.status}, `, h("b", {}, call.odd)) : h("span", {}, call.status);
}

export function note(text: string): HTMLElement {
  return h("div.none", {}, h("p", {}, ...prose(text)));
}

const times = (count: number): string => (count === 1 ? "once" : `${count} times`);
const shortSite = (site: string): string => site.replace(/^.*[\\/]/, "");

function times_(call: CallDetail, ofAll: number, runs: string): HTMLElement {
  const gil = call.gil;
  const resolution = gil?.resolution_ns ?? ofAll;
  const kv = (name: string, ns: number | null, rest = ""): HTMLElement | null => (ns === null ? null : h("span.kv", {}, `${name} `, h("b", {}, time(ns)), rest && h("span.dim", {}, ` ${rest}`)));
  const body = call.duration_ns;
  const stopped = call.stopped_ns ? h("span.kv", { title: "held at a breakpoint: no part of its time" }, "stopped ", h("b", {}, time(call.stopped_ns))) : null;
  if (!gil) {
    return h("div", {}, body === null ? h("span", {}, runs) : kv("body", body), call.cpu_ns === null ? null : kv("CPU", call.cpu_ns), stopped, h("span.dim", {}, "GIL not measured"));
  }
  const total = (gil.wait_ns ?? 0) + (body ?? 0) || 1;
  const released = gil.released_ns ?? 0;
  const bar = h("span.bar.tot", { "aria-hidden": "true" });
  const add = (kind: string, ns: number): void => {
    if (ns <= 0) return;
    const part = h("i", { class: kind });
    part.style.width = `${(ns / total) * 100}%`;
    bar.append(part);
  };
  const inside = gil.reacquire_ns ?? 0;
  add("w", (gil.wait_ns ?? 0) + inside);
  add(call.kind === "gradient" ? "g" : "h", Math.max(0, (body ?? 0) - released - inside));
  add("r", released);
  const grade = { native: "(measured)", "op-start": "(from op start)", bound: "(at most)" }[gil.grade] ?? "";
  return h(
    "div",
    {},
    bar,
    gil.wait_ns === null ? h("span.dim", {}, "wait not measured") : h("span.kv", {}, "wait ", h("b", {}, waited(gil.wait_ns, resolution, gil.grade)), h("span.dim", {}, ` ${grade}`)),
    kv("held", gil.held_ns) ?? (body === null ? null : kv("body", body)),
    kv("released", gil.released_ns) ?? h("span.dim", {}, "held not measured"),
    gil.reacquire_ns && gil.reacquire_ns >= resolution ? kv("waited inside", gil.reacquire_ns) : null,
    stopped,
    gil.blame.length ? h("span.dim.behind", {}, `behind ${gil.blame.slice(0, 2).map(([who, ns]) => `${who} ${time(ns)}`).join(", ")}`) : null,
  );
}

function valueRow(value: Value, first: boolean, call: CallDetail, open: () => void): HTMLElement {
  const trend = call.trends?.[`${value.role.replace("grad ", "")}:${value.position}`];
  const own = (call.kind === "gradient") === value.role.startsWith("grad ");
  const name = h("button.lk.code", { type: "button", title: "Look at it", "data-focus": `value-${value.role}-${value.position}` }, value.path);
  name.addEventListener("click", open);
  const scalar = value.min !== null && value.min === value.max;
  // Without a finite number the line itself says how many are none: not twice.
  const told = value.min === null;
  const flags = [value.nan && !told ? `NaN ${int(value.nan)}` : "", value.inf && !told ? `inf ${int(value.inf)}` : "", value.note].filter(Boolean).join("  ");
  const number = /^(u?int|bool)/.test(value.dtype) ? (x: number): string => (Math.abs(x) < 1e15 ? int(x) : sig3(x)) : sig3;
  const range = value.min === null || value.max === null ? restOf(value) : scalar ? number(value.min) : `[${number(value.min)}, ${number(value.max)}]`;
  return h(
    "tr",
    { class: first ? "first" : "", title: value.text },
    h("td.dir.l", {}, first ? ROLES[value.role] : ""),
    h("td.l.code", {}, name),
    h("td.l.ty.code.dim", {}, typeText(value.dtype, value.shape)),
    h("td.l.code.rg", {}, range, flags ? h("b", {}, ` ${flags}`) : null, value.sampled !== null ? h("span.dim", {}, ` of ${value.sampled} sampled`) : null),
    h("td.mu.code", {}, scalar ? "" : sig3(value.mean)),
    h("td.sd.code", {}, scalar ? "" : sig3(value.std)),
    h("td.l.hs", {}, scalar ? (trend && own ? sparkline(trend, call.id, value.mean) : null) : histogram(value.histogram, value.min, value.max)),
    deltaCell(value.delta),
  );
}

/** What a value without numbers says: the rest of its line behind the type. */
function restOf(value: Value): string {
  const type = value.text.match(/^[^\s[]+(\[[^\]]*\])?\s*/)?.[0] ?? "";
  const rest = value.text.slice(type.length);
  return rest.length > 60 ? `${rest.slice(0, 59)}…` : rest;
}

function deltaCell(delta: Delta | null): HTMLElement {
  if (!delta) return h("td.code.dim", {}, "");
  switch (delta.kind) {
    case "equal": return h("td.code.dim", {}, "equal");
    case "same-summary": return h("td.code.dim", { title: "same statistics; the elements were not kept" }, "same stats");
    case "max": return h("td.code", {}, sig3(delta.value));
    case "mean": return h("td.code", { title: "difference of the means; the elements were not kept" }, h("span.dim", {}, "Δμ "), sig3(delta.value));
    case "type": return h("td.code", {}, delta.text ?? "");
    default: return h("td.code", {}, "differs");
  }
}

function tableRow(items: string[]): HTMLElement {
  return h("tr", {}, h("td.dir"), h("td.l.code.dim.elements", { colspan: 7 }, items.join("  ")));
}

function failure(call: CallDetail, goto: (file: string, line: number) => void): HTMLElement {
  const { failure: f } = call;
  const details = h("details", {}, h("summary", {}, "traceback"), h("pre", { tabindex: 0 }, f!.traceback));
  return h(
    "div.failure",
    {},
    h("p", {}, h("b", {}, `✕ ${f!.type}`), f!.message ? `: ${f!.message}` : ""),
    f!.frames.length ? h("ol.frames", {}, ...[...f!.frames].reverse().slice(0, 6).map((frame, i) => frameLine(frame.place, frame.file, frame.line, frame.text || frame.function, i === 0, goto))) : null,
    f!.traceback ? details : null,
  );
}

export function frameLine(place: string, file: string, line: number, what: string, current: boolean, goto: (file: string, line: number) => void): HTMLElement {
  const link = h("button.lk.code", { type: "button", title: `${file}:${line}`, "data-focus": `at-${file}:${line}` }, place);
  link.addEventListener("click", () => goto(file, line));
  return h("li", { class: current ? "cur" : "" }, link, h("span", { title: what }, what));
}

const plain = (place: string, what: string): HTMLElement => h("li", {}, h("span.cpp", {}, place), h("span", {}, what));

