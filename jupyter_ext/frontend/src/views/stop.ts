// The place of a stopped call: its source with the line, its locals and frames, a console, and who waits behind it.
import { isView, placeOf, titleOf, type StopBrief, type StopFrame, type StopLine, type StopView, type Way } from "../data/stops";
import { clear, h, keepFocus, text } from "../dom";
import { seconds } from "../format";
import { State } from "../state";
import { figure } from "./figures";
import { codeLine } from "./highlight";
import { Running } from "./running";
import { Variables } from "./variables";

/** Buttons with the letter that pdb knows them by; with the focus in the pane the letter alone does the same. */
export const COMMANDS: [string, string, string][] = [
  ["c", "continue", "Go on to the next breakpoint"],
  ["n", "next", "Run this line, then stop"],
  ["s", "step", "Run this line, stop in what it calls"],
  ["r", "return", "Run to the end of this function"],
  ["u", "up", "Look at the caller's frame"],
  ["d", "down", "Look at the frame that was called"],
];
const WAYS: Record<Way, string> = {
  control: "over the control channel",
  comm: "over a comm",
  stdin: "in the input box",
  none: "",
};

/** The pdb command that goes to another frame, or empty. Frames are in pdb's order: the innermost is the last. */
export function moveTo(from: number, to: number): string {
  return to === from ? "" : to < from ? `up ${from - to}` : `down ${to - from}`;
}

/** What a waiting call will do. */
export function waits(stop: StopBrief, waited: number): string {
  if (typeof stop.policy !== "number") return `waits ${seconds(waited)}`;
  return `waits ${seconds(waited)}, goes on after ${seconds(stop.policy)}`;
}

/** Lines typed before: arrow up and down. */
export class History {
  private readonly lines: string[] = [];
  private at = 0;

  add(line: string): void {
    if (line && line !== this.lines[this.lines.length - 1]) this.lines.push(line);
    this.at = this.lines.length;
  }

  move(by: number): string | null {
    const to = Math.min(Math.max(this.at + by, 0), this.lines.length);
    if (to === this.at) return null;
    this.at = to;
    return this.lines[to] ?? "";
  }
}

export class StopPane {
  readonly element = h("div.detail.d-stop", { tabindex: -1 });
  /** In the header: that something is stopped, wherever one looks. */
  readonly chip = h("button.chip", { type: "button", hidden: true, "data-focus": "stop-chip" });
  private readonly none = h("div.none");
  /** Look and pause; beside a stop only Look. */
  private readonly running: Running | null;
  private readonly why = h("span.swhy");
  private readonly way = h("small.way", { title: "How the kernel hears this panel: a ping at this stop showed it" });
  private readonly trouble = h("span.trouble", { role: "status" });
  private readonly source = h("ol.src");
  private readonly scroll = h("div.scroll", { tabindex: 0, role: "region", "aria-label": "Source of the stopped call", "data-focus": "stop-source" }, this.source);
  private readonly console = h("pre.con", { tabindex: 0, role: "log", "aria-label": "Console", "data-focus": "stop-console" });
  private readonly prompt = h("label.code");
  private readonly input = h("input.code", { type: "text", autocomplete: "off", autocapitalize: "off", spellcheck: "false", "data-focus": "stop-input" });
  private readonly about = h("div");
  private readonly side = h("div.side", {}, this.about);
  private readonly buttons: HTMLElement[] = [];
  private readonly board: HTMLElement;
  private readonly watchInput = h("input.code", { type: "text", placeholder: "expression to watch", "aria-label": "Expression to watch", spellcheck: "false", "data-focus": "watch" });
  private readonly variables = new Variables({ run: (statement) => this.say(statement), repaint: () => this.repaintSide() });
  private readonly history = new History();
  private opened: number | null = null;
  private drawn = "";
  private clock = 0;

  constructor(
    private readonly state: State,
    private readonly stops: StopLine | undefined,
    private readonly arrived: () => void,
    private readonly breakpoints: HTMLElement | null,
    signal: AbortSignal,
  ) {
    const id = `pfd-${Math.random().toString(36).slice(2)}`;
    this.input.id = id;
    this.prompt.htmlFor = id;
    for (const [key, name, title] of COMMANDS) this.buttons.push(this.button(name, () => this.say(key), title, key));
    const interrupt = this.button("interrupt", () => void this.stops?.abort().then((problem) => this.complain(problem)), "End the stop and the cell with KeyboardInterrupt, as Interrupt kernel does");
    this.board = h(
      "div.board",
      { hidden: true },
      h("div.sbar", {}, ...this.buttons, interrupt, this.why, this.trouble, this.way),
      h("div.sgrid", {}, h("div.smain", {}, this.scroll), h("div.sright", {}, this.side, h("div.talk", {}, this.console, h("div.ask", {}, this.prompt, this.input)))),
    );
    this.running = stops ? new Running(stops) : null;
    this.element.append(this.none, ...(this.running ? [this.running.element] : []), this.board);
    if (breakpoints) this.element.append(breakpoints);
    this.paintNone();
    if (!stops) return;
    this.input.addEventListener("keydown", (event) => this.typed(event), { signal });
    this.element.addEventListener("keydown", (event) => this.key(event), { signal });
    this.chip.addEventListener("click", () => this.open(), { signal });
    stops.onChange(() => this.update(), signal);
    state.on("ledger", () => {
      const stop = stops.mine ? stops.shown.state!.stop! : null;
      if (stop && state.selection.call === stop.call) this.choose(stop);
    }, signal);
    signal.addEventListener("abort", () => window.clearInterval(this.clock));
    this.update();
  }

  private button(name: string, press: () => void, title: string, key?: string): HTMLElement {
    const button = h("button.btn", { type: "button", title, "data-command": name, "data-focus": `stop-${name}` }, key ? h("kbd", {}, key) : null, key ? ` ${name}` : name);
    button.addEventListener("click", press);
    return button;
  }

  private open(): void {
    this.state.open("stop");
    this.element.focus({ preventScroll: true });
    this.arrived();
  }

  /** Sends a line of pdb. */
  private say(line: string): void {
    this.complain("");
    void this.stops?.line(line).then((problem) => this.complain(problem));
  }

  private complain(problem: string): void {
    text(this.trouble, problem === "ok" ? "" : problem);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || (event.target as HTMLElement).closest("input, select, textarea")) return;
    const command = COMMANDS.find(([key]) => key === event.key);
    if (!command || !isView(this.stops?.shown.state?.stop ?? null)) return;
    event.preventDefault();
    this.say(command[0]);
  }

  private typed(event: KeyboardEvent): void {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      if (this.stops?.shown.busy) return;
      const line = this.input.value;
      this.history.add(line);
      this.input.value = "";
      this.say(line);
    } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      const line = this.history.move(event.key === "ArrowUp" ? -1 : 1);
      event.preventDefault();
      if (line !== null) this.input.value = line;
    }
  }

  private update(): void {
    const { shown } = this.stops!;
    const state = shown.state;
    const stop = state?.stop ?? null;
    const view = isView(stop) ? stop : null;
    const stopped = stop && this.stops!.mine ? titleOf(stop) : "";
    if (stopped !== this.state.stopped) {
      this.state.stopped = stopped;
      this.state.emit("overview");
    }
    this.chip.hidden = stop === null;
    this.board.hidden = view === null;
    const home = view ? this.side : this.element;
    if (this.breakpoints && this.breakpoints.parentElement !== home) home.append(this.breakpoints);
    this.none.hidden = view !== null;
    if (this.running) {
      this.running.beside(stop !== null);
      const { element } = this.running;
      if (view && element.parentElement !== this.side) this.about.after(element);
      else if (!view && element.parentElement !== this.element) this.none.after(element);
    }
    this.element.setAttribute("aria-busy", String(shown.busy));
    for (const button of this.buttons) button.setAttribute("aria-disabled", String(shown.busy));
    window.clearInterval(this.clock);
    if (stop) this.clock = window.setInterval(() => this.tick(), 500);
    if (view) {
      // A repaint while the person reads or types: only what changed, and the focus stays.
      const drawn = `${view.id}:${view.seq}`;
      if (drawn !== this.drawn) keepFocus(this.element, () => this.paint(view, state!.way));
      this.drawn = drawn;
    } else {
      this.drawn = "";
      this.paintNone();
    }
    this.paintChip();
    if (view) keepFocus(this.element, () => this.paintSide(view));
    if (stop && stop.id !== this.opened) {
      this.opened = stop.id;
      if (this.stops!.mine) this.choose(stop);
      this.complain("");
      this.state.open("stop");
      this.arrived();
    }
  }

  /** Selects the stopped call; its row in the ledger may come later. */
  private choose(stop: StopBrief): void {
    const row = this.state.ledger.rows.find((one) => one.type === "node" && one.call_kind === "forward" && State.body(one) === stop.node);
    const key = row?.key ?? null;
    const { selection } = this.state;
    if (selection.call === stop.call && selection.key === key) return;
    this.state.chosen = true; // it stays selected when the recording ends
    this.state.selection = { call: stop.call, key: key ?? selection.key };
    this.state.emit("selection");
  }

  private repaintSide(): void {
    const stop = this.stops?.shown.state?.stop ?? null;
    if (isView(stop)) keepFocus(this.element, () => this.paintSide(stop));
  }

  private tick(): void {
    this.paintChip();
    const { shown } = this.stops!;
    for (const cell of this.side.querySelectorAll<HTMLElement>("[data-since]")) {
      const stop = shown.state?.waiting.find((one) => String(one.id) === cell.dataset["since"]);
      if (stop) text(cell, waits(stop, shown.seconds(stop.since_ns, performance.now())));
    }
  }

  private paintChip(): void {
    const { shown } = this.stops!;
    const stop = shown.state?.stop;
    if (!stop) return;
    const name = titleOf(stop);
    const held = isView(stop) ? `for ${seconds(shown.seconds(stop.since_ns, performance.now()))}` : "answer in the box under the cell";
    if (this.chip.childElementCount === 0) this.chip.append(h("i.bars", { "aria-hidden": "true" }), h("span"), h("b"), h("span"));
    const [, what, title, rest] = [...this.chip.children] as HTMLElement[];
    text(what!, this.stops!.mine ? "stopped in " : "not of this recording: stopped in ");
    text(title!, name);
    text(rest!, ` ${held}`);
  }

  private paintNone(): void {
    const stop = this.stops?.shown.state?.stop;
    clear(
      this.none,
      this.stops?.gone ? h("p", {}, h("b", {}, this.stops.gone)) : null,
      stop
        ? h("p", {}, h("b", {}, `${titleOf(stop)} is stopped on ${stop.thread}.`), " It is answered in the input box under the running cell: no panel answered the kernel's ping in time.")
        : h("p", {}, h("b", {}, "No call is stopped."), this.stops?.elsewhere ? ` ${this.stops.elsewhere} is stopped in another cell: its own panel answers.` : ""),
      h("p.dim", {}, "A call that hits a breakpoint takes this place: its source with the line, its locals, a console and the calls that queue behind it."),
      h("p.dim", {}, ...(this.breakpoints ? ["Set one below, on a line number in Source, or with "] : ["Set one with "]), h("code", {}, "%pyfunc_break NODE"), ", ", h("code", {}, 'pfd.break_on("NODE")'), " or ", h("code", {}, "breakpoint()"), " inside a body."),
    );
  }

  private paint(stop: StopView, way: Way): void {
    clear(this.why, h("b", {}, titleOf(stop)), ` on ${stop.thread}: ${stop.why}`, stop.rule ? h("code", {}, ` ${stop.rule}`) : null);
    text(this.way, WAYS[way]);
    text(this.prompt, stop.prompt.trim());
    const at = stop.source.find((line) => line.current)?.line ?? 0;
    clear(
      this.source,
      ...stop.source.map((line) =>
        h("li", { class: line.current ? "cur" : "", "aria-current": line.current ? "step" : null }, h("span.mark", { "aria-hidden": "true" }, line.current ? "▶" : ""), this.lineNumber(line, at), codeLine(line.pieces ?? [["", line.text]])),
      ),
    );
    const current = this.source.querySelector<HTMLElement>(".cur");
    if (current) this.scroll.scrollTop = current.offsetTop - this.scroll.offsetTop - this.scroll.clientHeight / 2;
    text(this.console, stop.console.join("\n"));
    this.console.scrollTop = this.console.scrollHeight;
  }

  /** The number of a later line runs on to it. */
  private lineNumber(line: StopView["source"][number], at: number): HTMLElement {
    if (line.line <= at || !line.text.trim() || line.text.trim().startsWith("#")) return h("span.ln", {}, line.line);
    const button = h("button.ln", { type: "button", tabindex: -1, title: "Run to this line", "aria-label": `Run to line ${line.line}` }, line.line);
    button.addEventListener("click", () => this.say(`until ${line.line}`));
    return button;
  }

  private paintSide(stop: StopView): void {
    const { shown } = this.stops!;
    const waiting = shown.state?.waiting ?? [];
    const now = performance.now();
    const top = this.side.scrollTop;
    clear(
      this.about,
      h("h4", {}, "Locals"),
      stop.locals.length ? h("table.locals", {}, h("tbody", {}, ...this.variables.rows(stop.locals))) : h("p.dim", {}, "none"),
      h("h4", {}, "Watch"),
      this.watched(stop),
      h("h4", {}, "Frames"),
      h("ul.frames", {}, ...stop.frames.map((frame, i) => this.frame(frame, i, stop.index)).reverse(), ...this.below(stop)),
      h("h4", {}, "Waiting calls", h("small", {}, waiting.length ? ` ${waiting.length}, GIL free` : "")),
      waiting.length
        ? h(
            "table.queue",
            {},
            h("tbody", {}, ...waiting.map((one) => h("tr", {}, h("th", { scope: "row" }, titleOf(one)), h("td", {}, one.thread), h("td", { "data-since": one.id }, waits(one, shown.seconds(one.since_ns, now)))))),
          )
        : h("p.dim", {}, "none"),
      stop.starving ? h("p.warn", {}, stop.starving) : null,
      h(
        "div.all",
        {},
        this.button("continue all", () => this.say("continue all"), "This call and all that wait go on"),
        this.button("detach", () => this.say("detach"), "All go on, and every breakpoint is disabled"),
      ),
    );
    this.side.scrollTop = top;
  }

  private watched(stop: StopView): HTMLElement {
    const watches = stop.watches ?? [];
    const names = watches.map((one) => one.name);
    const send = (wanted: string[]): void => void this.stops?.watch(wanted).then((problem) => this.complain(problem));
    return h(
      "div.watch",
      {},
      watches.length
        ? h("table.locals", {}, h("tbody", {}, ...watches.map((one) => {
            const remove = h("button.lk.edit", { type: "button", "aria-label": `No longer watch ${one.name}`, "data-focus": `unwatch-${one.name}` }, "remove");
            remove.addEventListener("click", () => send(names.filter((name) => name !== one.name)));
            return h("tr", { class: one.failed ? "failed" : "" }, h("th", { scope: "row", title: one.type }, one.name), h("td", { title: one.text }, one.picture ? figure(one.picture, "") : null, h("span.val", {}, one.text, one.range ? h("span.dim", {}, `  ${one.range}`) : null), remove));
          })))
        : null,
      this.watching(names, send),
    );
  }

  private watching(names: string[], send: (wanted: string[]) => void): HTMLElement {
    const input = this.watchInput;
    input.onkeydown = (event) => {
      if (event.key !== "Enter" || !input.value.trim()) return;
      event.preventDefault();
      send([...names, input.value.trim()]);
      input.value = "";
    };
    return input;
  }

  /** Under the body's frames: TensorFlow's own, and the line that made the node. */
  private below(stop: StopView): HTMLElement[] {
    const lines = [h("li.cpp", {}, h("span", {}, "C++"), h("span", {}, `TensorFlow runs the graph, ${stop.thread}`))];
    const { site } = stop;
    if (site) lines.push(h("li", { title: `${site.file}:${site.line}` }, h("span.code", {}, placeOf(site)), h("span", {}, `${site.function}: made the node`)));
    return lines;
  }

  private frame(frame: StopFrame, index: number, current: number): HTMLElement {
    const here = index === current;
    const button = h("button.lk", { type: "button", title: `${frame.file}:${frame.line}`, "data-focus": `stop-frame-${index}`, "aria-current": here ? "true" : null }, placeOf(frame));
    button.addEventListener("click", () => {
      const command = moveTo(current, index);
      if (command) this.say(command);
    });
    return h("li", { class: here ? "cur" : "" }, button, h("span", {}, frame.function));
  }
}
