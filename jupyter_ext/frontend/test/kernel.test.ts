import { describe, expect, it, vi } from "vitest";

import { KernelSource } from "../src/data/kernel";
import type { Link } from "../src/data/source";
import type { AnyModel } from "../src/data/widget";
import { fakeTime } from "./time";

interface Sent {
  type: string;
  id: string;
  showing_ms: number;
  queries: { method: string }[];
}

/** A page's side of a kernel: what was sent, and what the kernel says to it. */
class Model {
  readonly control: Sent[] = [];
  readonly comm: Sent[] = [];
  private readonly heard = new Set<(message: unknown, buffers: unknown[]) => void>();
  readonly widget_manager;
  constructor(takes: boolean | null) {
    const take = (message: { content: Sent }): { done: Promise<unknown> } => {
      if (message.content.type === "request") this.control.push(message.content); // the stop's line asks for itself
      const done = takes === null ? new Promise(() => {}) : Promise.resolve({ content: { status: takes ? "ok" : "unknown" } });
      return { done };
    };
    this.widget_manager = { kernel: { clientId: "c", sendControlMessage: take } };
  }
  get(): string {
    return "panel";
  }
  on(_: string, callback: (message: unknown, buffers: unknown[]) => void): void {
    this.heard.add(callback);
  }
  off(): void {}
  send(content: Sent): void {
    if (content.type === "request") this.comm.push(content);
  }
  say(message: unknown): void {
    for (const callback of this.heard) callback(message, []);
  }
  reply(id: string, result: unknown): void {
    this.say({ type: "replies", replies: [{ id, answers: [{ result }] }] });
  }
}

function open(takes: boolean | null): { model: Model; source: KernelSource; links: Link[] } {
  const model = new Model(takes);
  const { signal } = new AbortController();
  const source = new KernelSource(model as unknown as AnyModel, signal);
  const links: Link[] = [];
  source.onLink((link) => links.push(link), signal);
  return { model, source, links };
}
const why = (promise: Promise<unknown>): Promise<string> => promise.then(() => "answered", (error: Error) => error.message);

fakeTime();

describe("a kernel that opens a huge recording", () => {
  it("is slow, not lost: the next question is answered", async () => {
    const { model, source, links } = open(true);
    const first = why(source.ask("overview", {}));
    await vi.advanceTimersByTimeAsync(30_001);
    expect(await first).toContain("did not answer in 30 s");
    expect(links.at(-1)?.state).toBe("live");
    const second = source.ask("overview", {});
    await vi.advanceTimersByTimeAsync(10);
    expect(model.control).toHaveLength(2);
    model.reply(model.control[0]!.id, { name: "too late" });
    model.reply(model.control[1]!.id, { name: "train.pfrec" });
    expect((await second).result.name).toBe("train.pfrec");
    expect(model.comm).toHaveLength(0);
  });
});

describe("a page that is slow to show what it is told", () => {
  it("says so with the next revision's questions: its work and its paint, not its wait for a frame", async () => {
    const { model, source } = open(true);
    const first = source.ask("overview", {});
    await vi.advanceTimersByTimeAsync(1);
    expect(model.control[0]!.showing_ms).toBe(0);
    const clock = vi.spyOn(performance, "now").mockReturnValue(1000);
    const work = first.then(() => clock.mockReturnValue(1040));
    model.reply(model.control[0]!.id, {});
    await work;
    await vi.advanceTimersByTimeAsync(2);
    clock.mockReturnValue(1055);
    await vi.advanceTimersByTimeAsync(14);
    clock.mockReturnValue(1062);
    await vi.advanceTimersByTimeAsync(5);
    clock.mockRestore();
    void source.ask("overview", {});
    await vi.advanceTimersByTimeAsync(1);
    expect(model.control[1]!.showing_ms).toBe(0); // still the same revision: more may come
    model.say({ type: "revision", revision: 2 });
    void source.ask("overview", {});
    await vi.advanceTimersByTimeAsync(1);
    expect(model.control[2]!.showing_ms).toBe(47);
  });
});

describe("a kernel that does not know the panel", () => {
  for (const [what, takes] of [["refuses", false], ["says nothing", null]] as const) {
    it(`${what}: the comm is tried, and then the static form takes over`, async () => {
      const { model, source, links } = open(takes);
      const asked = why(source.ask("overview", {}));
      await vi.advanceTimersByTimeAsync(3_100);
      expect(model.comm.map((sent) => sent.id)).toEqual(model.control.map((sent) => sent.id));
      await vi.advanceTimersByTimeAsync(27_000);
      expect(await asked).toContain("did not answer");
      expect(links.at(-1)).toMatchObject({ state: "lost" });
      expect(await why(source.ask("ledger", {}))).toContain("static form");
    });
  }
});

describe("questions of one turn", () => {
  it("travel together", async () => {
    const { model, source } = open(true);
    void source.ask("overview", {});
    void source.ask("ledger", {});
    await vi.advanceTimersByTimeAsync(1);
    expect(model.control.map((sent) => sent.queries.map((query) => query.method))).toEqual([["overview", "ledger"]]);
  });
});
