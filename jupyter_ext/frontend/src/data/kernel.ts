// Data from a kernel: questions travel as custom messages with an id, answers come back with that id, an error field
// and binary buffers. The control channel is tried first, because it is served while a cell is busy or stopped.
import { askControl } from "./control";
import { StopLine } from "./stops";
import { listen, type AnyModel, type Kernel } from "./widget";
import { decodeArrays, type Answer, type ArrayPlace, type Method, type Questions } from "./protocol";
import type { DataSource, Link, Place } from "./source";

const TIMEOUT_MS = 30_000;
const RETRY_MS = 15_000;

interface Waiting {
  resolve: (answer: { result: unknown; arrays: Record<string, never> }) => void;
  reject: (error: Error) => void;
}
interface Question {
  method: string;
  params: unknown;
}
type Reply = { result?: unknown; arrays?: Record<string, ArrayPlace>; error?: string };
interface Message {
  type: "replies" | "revision" | "show";
  replies?: { id: string; answers: Reply[] }[];
  revision?: number;
  place?: Place;
}

export class KernelSource implements DataSource {
  readonly kind = "kernel";
  readonly trimmed = "";
  readonly stops: StopLine;
  private readonly pending = new Map<string, { waiting: Waiting[]; timer: number }>();
  private queue: { question: Question; waiting: Waiting }[] = [];
  private readonly revisions = new Set<(revision: number) => void>();
  private readonly links = new Set<(link: Link) => void>();
  private readonly shows = new Set<(place: Place) => void>();
  private link: Link;
  private noControlUntil = 0;
  private answered = false;
  private taken = false;
  private serial = 0;
  private showing = { nowMs: 0, lastMs: 0 };
  private readonly session = crypto.randomUUID?.() ?? String(Math.random());

  constructor(
    private readonly model: AnyModel,
    signal: AbortSignal,
  ) {
    this.stops = new StopLine(model, signal);
    this.link = { state: "live", via: this.kernel()?.sendControlMessage ? "control channel" : "comm" };
    if (model.widget_manager && "kernel" in model.widget_manager && !model.widget_manager.kernel) {
      this.link = { state: "lost", why: "no kernel: the static form is shown" };
    }
    listen(
      model,
      (message: Message, buffers: ArrayBufferView[]) => this.receive(message, buffers ?? []),
      (died) => this.lose(`the kernel ${died ? "that recorded this is gone" : "was shut down"}: what was loaded stays readable`),
      signal,
    );
    signal.addEventListener("abort", () => this.failAll("the panel was closed"));
  }

  ask<M extends Method>(method: M, params: Questions[M]["params"]): Promise<Answer<M>> {
    return this.send(method, params) as Promise<Answer<M>>;
  }

  act(deed: string, params: Record<string, unknown>): Promise<unknown> {
    return this.send(deed, params).then((answer) => answer.result);
  }

  report(): Promise<string> {
    return this.send("report", {}).then((answer) => String(answer.result));
  }

  onRevision(callback: (revision: number) => void, signal: AbortSignal): void {
    subscribe(this.revisions, callback, signal);
  }

  onLink(callback: (link: Link) => void, signal: AbortSignal): void {
    subscribe(this.links, callback, signal);
    callback(this.link);
  }

  onShow(callback: (place: Place) => void, signal: AbortSignal): void {
    subscribe(this.shows, callback, signal);
  }

  private kernel(): Kernel | undefined {
    return this.model.widget_manager?.kernel ?? undefined;
  }

  /** Questions of one turn of the event loop travel together: a server drops what exceeds its message rate. */
  private send(method: string, params: unknown): Promise<{ result: unknown; arrays: Record<string, never> }> {
    if (this.link.state === "lost") return Promise.reject(new Error(this.link.why));
    return new Promise((resolve, reject) => {
      this.queue.push({ question: { method, params }, waiting: { resolve, reject } });
      if (this.queue.length === 1) queueMicrotask(() => this.flush());
    });
  }

  private flush(): void {
    const batch = this.queue;
    this.queue = [];
    if (!batch.length) return;
    const id = `${this.session}.${++this.serial}`;
    const content = { type: "request", id, showing_ms: Math.round(this.showing.lastMs), queries: batch.map((item) => item.question) };
    const timer = window.setTimeout(() => {
      this.pending.delete(id);
      const why = `the kernel did not answer in ${TIMEOUT_MS / 1000} s`;
      // Never a sign at all: a saved notebook whose kernel does not know this panel. One that took the question is only
      // slow: a huge recording takes its time to open.
      if (!this.answered && !this.taken) this.lose("the kernel that recorded this does not run: the static form is shown");
      for (const { waiting } of batch) waiting.reject(new Error(why));
    }, TIMEOUT_MS);
    this.pending.set(id, { waiting: batch.map((item) => item.waiting), timer });
    const control = performance.now() < this.noControlUntil ? undefined : this.sendControl(content);
    if (!control) {
      this.sendComm(content);
      return;
    }
    control.catch(() => {
      // Nobody listens on the control channel (an older kernel), or it is late: the comm is answered between cells.
      this.noControlUntil = performance.now() + RETRY_MS;
      if (this.pending.has(id)) this.sendComm(content);
    });
  }

  private sendComm(content: unknown): void {
    this.setLink({ state: "live", via: "comm" });
    try {
      this.model.send(content);
    } catch (error) {
      this.lose(`the kernel cannot be reached (${error instanceof Error ? error.message : String(error)})`);
    }
  }

  private sendControl(content: Record<string, unknown>): Promise<void> | undefined {
    return askControl(this.model, content)?.then((reply) => {
      if (reply.status !== "ok") throw new Error("refused");
      this.taken = true;
      this.setLink({ state: "live", via: "control channel" });
    });
  }

  private receive(message: Message, buffers: ArrayBufferView[]): void {
    if (message.type === "revision") {
      this.showing = { nowMs: 0, lastMs: this.showing.nowMs };
      for (const callback of this.revisions) callback(message.revision ?? 0);
    } else if (message.type === "show") {
      for (const callback of this.shows) callback(message.place ?? {});
    } else if (message.type === "replies") {
      this.timeShowing();
      for (const reply of message.replies ?? []) this.settle(reply.id, reply.answers, buffers);
    }
  }

  /** Adds up how long the page is busy with what arrives for a revision: the kernel says less to a page that is slow. */
  private timeShowing(): void {
    const start = performance.now();
    setTimeout(() => {
      const working = performance.now() - start;
      requestAnimationFrame(() => {
        const frame = performance.now();
        setTimeout(() => (this.showing.nowMs += working + performance.now() - frame));
      });
    });
  }

  private settle(id: string, answers: Reply[], buffers: ArrayBufferView[]): void {
    const entry = this.pending.get(id);
    if (!entry) return;
    this.pending.delete(id);
    window.clearTimeout(entry.timer);
    this.answered = true;
    entry.waiting.forEach((waiting, i) => {
      const answer = answers[i];
      if (!answer) return waiting.reject(new Error("the kernel sent no answer"));
      if (answer.error !== undefined) return waiting.reject(new Error(answer.error));
      try {
        const arrays = decodeArrays(answer.arrays ?? {}, buffers) as Record<string, never>;
        waiting.resolve({ result: answer.result, arrays });
      } catch (error) {
        waiting.reject(error instanceof Error ? error : new Error(String(error)));
      }
    });
  }

  private setLink(link: Link): void {
    if (this.link.state === "lost") return;
    if (link.state === this.link.state && "via" in link && "via" in this.link && link.via === this.link.via) return;
    this.link = link;
    for (const callback of this.links) callback(link);
  }

  private lose(why: string): void {
    this.setLink({ state: "lost", why });
    this.failAll(why);
  }

  private failAll(why: string): void {
    for (const { waiting, timer } of this.pending.values()) {
      window.clearTimeout(timer);
      for (const one of waiting) one.reject(new Error(why));
    }
    this.pending.clear();
  }
}

function subscribe<T>(set: Set<T>, callback: T, signal: AbortSignal): void {
  set.add(callback);
  signal.addEventListener("abort", () => set.delete(callback));
}
