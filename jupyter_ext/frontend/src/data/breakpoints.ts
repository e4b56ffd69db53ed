// The breakpoints of the kernel: the same list that `%pyfunc_break list` prints, looked at again while somebody looks.
import type { StopLine } from "./stops";

export interface Breakpoint {
  number: number;
  where: string;
  /** Of `file.py:line`; null where it names a node. */
  file: string | null;
  line: number | null;
  when: "before" | "after" | "error" | "gradient";
  condition: string | null;
  first_hit: number;
  once: boolean;
  enabled: boolean;
  hits: number;
  stopped: number;
  /** Why its condition could not be evaluated, or empty. */
  error: string;
}

export interface NewBreakpoint {
  where: string;
  when?: string;
  condition?: string;
  hits?: number;
  once?: boolean;
}

export type Place = { file: string; line: number } | { where: string };

const AGAIN_MS = 1000;

export class Breakpoints {
  all: readonly Breakpoint[] = [];
  private readonly callbacks = new Set<() => void>();
  private asked = 0;
  private turn: Promise<void> = Promise.resolve();

  constructor(private readonly line: StopLine) {}

  onChange(callback: () => void, signal: AbortSignal): void {
    this.callbacks.add(callback);
    signal.addEventListener("abort", () => this.callbacks.delete(callback));
  }

  /** Looks again; not more often than makes sense. */
  refresh(): void {
    const now = performance.now();
    if (this.asked && now - this.asked < AGAIN_MS) return;
    this.asked = now;
    void this.ask({ action: "list" });
  }

  add(wanted: NewBreakpoint): Promise<string> {
    return this.ask({ action: "add", ...wanted });
  }

  remove(number: number): Promise<string> {
    return this.ask({ action: "remove", number });
  }

  change(number: number, change: { enabled?: boolean; condition?: string }): Promise<string> {
    return this.ask({ action: "change", number, ...change });
  }

  /** What is wrong with a condition, in words; empty if it can be evaluated. */
  check(condition: string): Promise<string> {
    return this.ask({ action: "check", condition });
  }

  /** That of a line of a file, or of a node's name. */
  at(place: Place, when: Breakpoint["when"] = "before"): Breakpoint | undefined {
    return this.all.find((one) => ("where" in place ? one.where === place.where && one.when === when : one.file !== null && one.line === place.line && sameFile(one.file, place.file)));
  }

  /** Sets one, or removes the one that is there; after what was asked before, so that a second press undoes the first. */
  toggle(place: Place, when: Breakpoint["when"] = "before"): Promise<string> {
    const done = this.turn.then(() => {
      const known = this.at(place, when);
      return known ? this.remove(known.number) : this.add({ where: "where" in place ? place.where : `${place.file}:${place.line}`, ...(when === "before" ? {} : { when }) });
    });
    this.turn = done.then(() => undefined, () => undefined);
    return done;
  }

  /** Resolves to what is wrong, in words, or empty. */
  private async ask(content: Record<string, unknown>): Promise<string> {
    const reply = await this.line.breakpoints(content);
    const { breakpoints } = reply;
    if (Array.isArray(breakpoints) && JSON.stringify(breakpoints) !== JSON.stringify(this.all)) {
      this.all = breakpoints as Breakpoint[];
      for (const callback of [...this.callbacks]) callback();
    }
    return reply.status === "ok" ? "" : String(reply.status ?? "no answer");
  }
}

/** Whether `train.py` or `lib/train.py` means this file. */
export const sameFile = (shown: string, file: string): boolean => file === shown || file.replace(/\\/g, "/").endsWith(`/${shown.replace(/\\/g, "/").replace(/^\/+/, "")}`);
