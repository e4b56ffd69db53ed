// A stop, the page's half: the kernel says its state as a whole, the page answers pings and sends commands, each with
// the stop and the prompt it was made for. Over the control channel; where nobody listens there, over the comm, which
// a kernel that serves it on a subshell hears while the cell is blocked.
import { askControl } from "./control";
import type { Picture, Piece } from "./protocol";
import { listen, type AnyModel } from "./widget";

/** Who answers: the page over one of two ways, the input box under the cell, or nobody. */
export type Way = "control" | "comm" | "stdin" | "none";

export interface StopBrief {
  id: number;
  node: string;
  call: number | null;
  thread: string;
  why: string;
  rule: string | null;
  since_ns: number;
  policy: string | number;
  /** The user's line that made the node. */
  site?: StopFrame | null;
}
export interface StopFrame {
  function: string;
  file: string;
  line: number;
  label?: string | null;
}
export interface Variable {
  name: string;
  type: string;
  text: string;
  range?: string;
  picture?: Picture;
  children?: Variable[];
  /** How many children more there are. */
  more?: number;
  failed?: boolean;
}
/** What is drawn of a stop at its prompt. */
export interface StopView extends StopBrief {
  seq: number;
  index: number;
  prompt: string;
  source: { line: number; text: string; current: boolean; pieces?: Piece[] }[];
  frames: StopFrame[];
  locals: Variable[];
  /** Expressions that somebody watches, evaluated in the selected frame. */
  watches?: Variable[];
  console: string[];
  starving: string;
}
export interface StopState {
  ping: number;
  way: Way;
  now_ns: number;
  /** The running cell's own panel, or null: it has none, and every panel offers to answer. */
  home: string | null;
  stop: StopBrief | StopView | null;
  waiting: StopBrief[];
}

/** Whether the page is to answer it: the brief form belongs to somebody else. */
export const isView = (stop: StopBrief | StopView | null): stop is StopView => stop !== null && "seq" in stop && "frames" in stop;

/** `augment #12` */
export const titleOf = (stop: { node: string; call: number | null }): string => (stop.call === null ? stop.node : `${stop.node} #${stop.call}`);

/** `cell [4]:12` or `train.py:12` */
export function placeOf(frame: StopFrame): string {
  return `${frame.label ?? frame.file.split(/[\\/]/).pop() ?? ""}:${frame.line}`;
}

/** A call whose body runs, as it was when somebody looked. */
export interface RunningView {
  node: string;
  call: number | null;
  thread: string;
  since_ns: number | null;
  stopped: boolean;
  frames: StopFrame[];
  source: { line: number; text: string; current: boolean; pieces?: Piece[] }[];
  locals: Variable[];
}

/** What a page says it has shown. */
export const seenOf = (state: StopState): string => (isView(state.stop) ? `${state.stop.id}:${state.stop.seq}` : "");

/** What became of a command: `status` is ok, or says in words what is wrong. */
export interface Reply {
  status?: string;
  [name: string]: unknown;
}

const BETWEEN_MS = 250;
const CONTROL_MS = 300;
const COMM_MS = 3000;

/** What the person sees: a step sends states without a stop in between, and those are not shown. */
export class Shown {
  state: StopState | null = null;
  /** When `state` came, in ms of `performance.now()`: its times go on from there. */
  at = 0;
  /** Whether a command is under way: no other is taken until the next prompt. */
  busy = false;
  private empty: number | null = null;

  /** Takes a state. Returns whether something changed for the person now. */
  take(state: StopState, now: number): boolean {
    if (state.stop === null && this.state?.stop) {
      this.empty ??= now;
      return false;
    }
    this.empty = null;
    const old = this.state?.stop ?? null;
    const { stop } = state;
    if (!(isView(old) && isView(stop) && old.id === stop.id && old.seq === stop.seq)) this.busy = false;
    this.state = state;
    this.at = now;
    return true;
  }

  /** Whether the stop has been gone for so long that it is over. Returns the ms until to ask again, or null. */
  settle(now: number): number | null {
    if (this.empty === null) return null;
    const left = this.empty + BETWEEN_MS - now;
    if (left > 0) return left;
    this.forget();
    return null;
  }

  forget(): void {
    this.empty = null;
    this.busy = false;
    this.state = null;
  }

  /** Seconds since a time of the kernel's clock. */
  seconds(since_ns: number, now: number): number {
    return this.state ? Math.max(0, (this.state.now_ns - since_ns) / 1e9 + (now - this.at) / 1000) : 0;
  }
}

export class StopLine {
  readonly shown = new Shown();
  /** What is stopped in a cell that has a panel of its own, or empty. */
  elsewhere = "";
  /** Why there is no stop any more, in words, or empty. */
  gone = "";
  private readonly callbacks = new Set<() => void>();
  private readonly replies = new Map<number, (reply: Reply) => void>();
  private ponged = 0;
  private acknowledged = "";
  private serial = 0;
  private timer = 0;

  constructor(
    private readonly model: AnyModel,
    private readonly signal: AbortSignal,
  ) {
    listen(model, (message: { type: string }) => this.receive(message), () => this.lose(), signal);
    signal.addEventListener("abort", () => window.clearTimeout(this.timer));
    this.hello();
  }

  onChange(callback: () => void, signal: AbortSignal): void {
    this.callbacks.add(callback);
    signal.addEventListener("abort", () => this.callbacks.delete(callback));
  }

  /** Whether the stop is of this panel's own recording. */
  get mine(): boolean {
    const { state } = this.shown;
    return state !== null && state.stop !== null && state.home === this.home;
  }

  /** The panel's own name: see `StopState.home`. */
  get home(): string {
    return String(this.model.get("panel_id"));
  }

  /** Sends a line of pdb for the prompt that is shown. Resolves to what became of it, in words; empty: it was taken. */
  async line(line: string): Promise<string> {
    const { shown } = this;
    const stop = shown.state?.stop ?? null;
    if (!isView(stop) || shown.busy) return "";
    shown.busy = true;
    this.tell();
    const status = await this.command({ command: "line", stop: stop.id, seq: stop.seq, line });
    if (status === "ok") return "";
    shown.busy = false;
    this.tell();
    return status === "stale" ? "" : status;
  }

  /** Has expressions evaluated at each prompt. Resolves to what is wrong with them, or empty. */
  async watch(watches: readonly string[]): Promise<string> {
    const status = await this.command({ command: "watch", watches });
    return status === "ok" ? "" : status;
  }

  /** What runs in bodies now, and the kernel's clock then; nothing is stopped. In words where that is not known. */
  async look(): Promise<{ running: RunningView[]; now_ns: number } | string> {
    const reply = await this.send({ command: "look" });
    return reply.status === "ok" ? { running: reply["running"] as RunningView[], now_ns: Number(reply["now_ns"]) } : String(reply.status ?? "no answer");
  }

  /** Stops a body that runs, at its next line. Resolves to what else will stop, or what is wrong; empty: it was taken. */
  async pause(): Promise<string> {
    const status = await this.command({ command: "pause" });
    return status === "ok" ? "" : status;
  }

  /** Ends the stop as Interrupt kernel does. */
  abort(): Promise<string> {
    return this.command({ command: "abort" });
  }

  /** Asks for the breakpoints, or changes them. */
  breakpoints(content: Record<string, unknown>): Promise<Reply> {
    return this.send({ command: "breakpoints", ...content });
  }

  private async command(content: Record<string, unknown>): Promise<string> {
    return String((await this.send(content)).status ?? "no answer");
  }

  private async send(content: Record<string, unknown>): Promise<Reply> {
    const message = { type: "stop", ...content };
    try {
      if (this.shown.state?.way !== "comm") {
        const reply = await askControl(this.model, message);
        if (reply) return reply;
      }
      return await this.comm(message);
    } catch {
      return { status: "the kernel did not answer: use Interrupt" };
    }
  }

  private comm(content: Record<string, unknown>): Promise<Reply> {
    const id = ++this.serial;
    return new Promise((resolve, reject) => {
      this.replies.set(id, resolve);
      window.setTimeout(() => {
        if (this.replies.delete(id)) reject(new Error("late"));
      }, COMM_MS);
      this.model.send({ ...content, id });
    });
  }

  /** Says that this page is there: a stop that was open before it was loaded is answered with the kernel's state. */
  private hello(): void {
    const content = { type: "stop", command: "hello" };
    const control = askControl(this.model, content);
    if (!control) {
      this.trySend(content);
      return;
    }
    control.then((reply) => this.take(reply["state"]), () => this.trySend(content));
  }

  private trySend(content: Record<string, unknown>): void {
    try {
      if (!this.signal.aborted) this.model.send(content);
    } catch {
      // Without a kernel nobody is there to be told.
    }
  }

  private receive(message: { type: string }): void {
    if (message.type === "stop") this.take(message);
    else if (message.type === "stop_reply") {
      const reply = message as unknown as Reply & { id: number };
      this.replies.get(reply.id)?.(reply);
      this.replies.delete(reply.id);
      if (reply["state"]) this.take(reply["state"]);
    }
  }

  private take(message: unknown): void {
    if (this.signal.aborted || typeof message !== "object" || message === null || !("waiting" in message)) return;
    const said = message as StopState;
    // Another recording's stop is that panel's to show and to answer.
    const foreign = said.home !== null && said.home !== this.home;
    const before = this.elsewhere;
    this.elsewhere = foreign && said.stop ? titleOf(said.stop) : "";
    const state = foreign ? { ...said, stop: null, waiting: [], ping: 0 } : said;
    if (before !== this.elsewhere) this.tell();
    if (state.ping && state.ping !== this.ponged) {
      this.ponged = state.ping;
      this.pong({ type: "stop", command: "pong", ping: state.ping });
    }
    this.gone = "";
    const now = performance.now();
    if (this.shown.take(state, now)) this.tell();
    this.waitForNext(now);
    const seen = seenOf(state);
    if (seen && seen !== this.acknowledged) {
      void this.command({ command: "seen", seen }).then((status) => {
        if (status === "ok") this.acknowledged = seen; // else the kernel announces it again
      });
    }
  }

  /** Over the control channel; if nobody has answered there for a moment, over the comm as well. */
  private pong(content: Record<string, unknown>): void {
    const control = askControl(this.model, content);
    if (!control) {
      this.trySend(content);
      return;
    }
    const timer = window.setTimeout(() => this.trySend(content), CONTROL_MS);
    control.then((reply) => reply.status === "ok" && window.clearTimeout(timer), () => undefined);
  }

  private waitForNext(now: number): void {
    window.clearTimeout(this.timer);
    const before = this.shown.state;
    const left = this.shown.settle(now);
    if (left !== null) this.timer = window.setTimeout(() => this.waitForNext(performance.now()), left + 1);
    else if (before !== this.shown.state) this.tell();
  }

  private lose(): void {
    if (this.shown.state?.stop) this.gone = "The kernel was restarted or shut down: this stop is gone.";
    this.shown.forget();
    this.tell();
  }

  private tell(): void {
    if (this.signal.aborted) return;
    for (const callback of [...this.callbacks]) callback();
  }
}
