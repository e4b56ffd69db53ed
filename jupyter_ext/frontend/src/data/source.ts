// Where a panel's data come from: a kernel that answers messages, or a page that holds them.
import type { Answer, Method, Questions } from "./protocol";
import type { StopLine } from "./stops";

export type Link =
  | { state: "live"; via: "control channel" | "comm" }
  | { state: "static" }
  /** Nothing answers: `why` says what that means for the person. */
  | { state: "lost"; why: string };

export interface DataSource {
  readonly kind: "kernel" | "embedded";
  /** Asks; rejects with an Error whose message can be shown. */
  ask<M extends Method>(method: M, params: Questions[M]["params"]): Promise<Answer<M>>;
  /** Calls back when there are new data, with the revision. */
  onRevision(callback: (revision: number) => void, signal: AbortSignal): void;
  onLink(callback: (link: Link) => void, signal: AbortSignal): void;
  /** Calls back when something asks the panel to show a place. */
  onShow(callback: (place: Place) => void, signal: AbortSignal): void;
  /** Has something done: keeps values, runs a call again, makes a test of it. Undefined where there is no kernel. */
  act?(deed: "keep" | "replay" | "replayed" | "test", params: Record<string, unknown>): Promise<unknown>;
  /** Writes an HTML report; resolves to its path. Undefined where there is nothing to write with. */
  report?(): Promise<string>;
  /** Stops, where there is a kernel that may stop. */
  readonly stops?: StopLine;
  /** What had to be left out, in words, or empty. */
  readonly trimmed: string;
}

export interface Place {
  call?: number;
  node?: number;
  file?: string;
  line?: number;
}
