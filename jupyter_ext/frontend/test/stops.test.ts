import { describe, expect, it, vi } from "vitest";

import { isView, placeOf, seenOf, Shown, StopLine, titleOf, type StopBrief, type StopState, type StopView } from "../src/data/stops";
import type { AnyModel } from "../src/data/widget";
import { seconds } from "../src/format";
import { History, moveTo, waits } from "../src/views/stop";
import { fakeTime } from "./time";

const brief = (id: number, extra: Partial<StopBrief> = {}): StopBrief => ({ id, node: "augment", call: 12, thread: "Dummy-3", why: "breakpoint 1 (before)", rule: "augment*", since_ns: 0, policy: "wait", ...extra });
const view = (id: number, seq: number): StopView => ({ ...brief(id), seq, index: 0, prompt: "(augment #12) ", source: [], frames: [], locals: [], console: [], starving: "" });
const state = (stop: StopState["stop"], extra: Partial<StopState> = {}): StopState => ({ ping: 0, way: stop ? "control" : "none", now_ns: 5e9, home: null, stop, waiting: [], ...extra });

describe("what is shown of a stop", () => {
  it("keeps the picture between two prompts, and blanks it when no prompt follows", () => {
    const shown = new Shown();
    expect(shown.take(state(view(1, 1)), 0)).toBe(true);
    expect(shown.take(state(null), 100)).toBe(false);
    expect(shown.settle(200)).toBeGreaterThan(0);
    expect(shown.state?.stop).not.toBeNull();
    expect(shown.take(state(view(1, 2)), 210)).toBe(true);
    expect(shown.settle(1000), "a prompt came: nothing to wait for").toBeNull();
    expect(isView(shown.state!.stop) && shown.state!.stop.seq).toBe(2);
    shown.take(state(null), 2000);
    shown.take(state(null), 2200);
    expect(shown.settle(2260), "counted from the first empty state").toBeNull();
    expect(shown.state).toBeNull();
  });
  it("is busy until the next prompt, not until any state", () => {
    const shown = new Shown();
    shown.take(state(view(1, 1)), 0);
    shown.busy = true;
    shown.take(state(view(1, 1)), 10);
    expect(shown.busy).toBe(true);
    shown.take(state(view(1, 2)), 20);
    expect(shown.busy).toBe(false);
  });
  it("goes on counting the kernel's clock", () => {
    const shown = new Shown();
    shown.take(state(view(1, 1)), 1000);
    expect(shown.seconds(2e9, 3000)).toBe(5);
    expect(shown.seconds(9e9, 1000), "never below zero").toBe(0);
  });
  it("acknowledges prompts of its own only", () => {
    expect(seenOf(state(view(3, 7)))).toBe("3:7");
    expect(seenOf(state(brief(3)))).toBe("");
    expect(seenOf(state(null))).toBe("");
  });
});

describe("words of the Stop pane", () => {
  it("names calls, places and times", () => {
    expect(titleOf(brief(1))).toBe("augment #12");
    expect(titleOf(brief(1, { call: null }))).toBe("augment");
    expect(placeOf({ function: "f", file: "/a/b/train.py", line: 3 })).toBe("train.py:3");
    expect(placeOf({ function: "f", file: "C:\\a\\train.py", line: 3 })).toBe("train.py:3");
    expect(placeOf({ function: "f", file: "/tmp/ipykernel_7/4.py", line: 3, label: "cell [4]" })).toBe("cell [4]:3");
    expect(seconds(12.61)).toBe("12.6 s");
    expect(seconds(1234)).toBe("1,230 s");
    expect(waits(brief(1), 3)).toBe("waits 3.0 s");
    expect(waits(brief(1, { policy: 60 }), 3)).toBe("waits 3.0 s, goes on after 60.0 s");
  });
  it("moves over frames as pdb does: up is towards the caller", () => {
    expect(moveTo(2, 0)).toBe("up 2");
    expect(moveTo(0, 1)).toBe("down 1");
    expect(moveTo(1, 1)).toBe("");
  });
  it("remembers lines", () => {
    const history = new History();
    expect(history.move(-1)).toBeNull();
    for (const line of ["p x", "p x", "n", ""]) history.add(line);
    expect([history.move(-1), history.move(-1), history.move(-1), history.move(1), history.move(1)]).toEqual(["n", "p x", null, "n", ""]);
  });
});

class FakeModel {
  sent: Record<string, unknown>[] = [];
  asked: Record<string, unknown>[] = [];
  listeners: ((message: unknown) => void)[] = [];
  status: ((sender: unknown, status: string) => void)[] = [];
  widget_manager: AnyModel["widget_manager"];

  constructor(control: "answers" | "silent" | "missing") {
    const signal = { connect: (slot: (sender: unknown, status: string) => void) => this.status.push(slot), disconnect: () => undefined };
    this.widget_manager = {
      kernel: {
        clientId: "c",
        statusChanged: signal,
        ...(control === "missing"
          ? {}
          : {
              sendControlMessage: (message: unknown) => {
                this.asked.push((message as { content: Record<string, unknown> }).content);
                return { done: control === "answers" ? Promise.resolve({ content: { status: "ok" } }) : new Promise(() => undefined) };
              },
            }),
      },
    } as AnyModel["widget_manager"];
  }
  get = (): unknown => "panel7";
  send = (content: unknown): number => this.sent.push(content as Record<string, unknown>);
  on = (_: string, callback: (message: never) => void): number => this.listeners.push(callback as (message: unknown) => void);
  off = (): void => undefined;
  receive(message: StopState | Record<string, unknown>): void {
    for (const listener of this.listeners) listener({ type: "stop", ...message });
  }
}

describe("the way to a stopped kernel", () => {
  fakeTime();
  const open = (model: FakeModel): StopLine => new StopLine(model as unknown as AnyModel, new AbortController().signal);
  const commands = (list: Record<string, unknown>[]): unknown[] => list.map((one) => one["command"]);

  it("is the control channel where that answers, and nothing goes over the comm", async () => {
    const model = new FakeModel("answers");
    const line = open(model);
    model.receive(state(null, { ping: 4 }));
    model.receive(state(null, { ping: 4 }));
    model.receive(state(view(1, 1)));
    await vi.advanceTimersByTimeAsync(400);
    expect(await line.line("n")).toBe("");
    expect(commands(model.asked)).toEqual(["hello", "pong", "seen", "line"]);
    expect(model.asked[1]).toMatchObject({ ping: 4, widget: "panel7" });
    expect(model.asked[3]).toMatchObject({ stop: 1, seq: 1, line: "n" });
    expect(model.sent).toEqual([]);
  });
  it("answers a ping over the comm as well when the control channel is silent", async () => {
    const model = new FakeModel("silent");
    open(model);
    model.receive(state(null, { ping: 1 }));
    await vi.advanceTimersByTimeAsync(400);
    expect(commands(model.sent)).toEqual(["pong"]);
  });
  it("is the comm where there is no other", async () => {
    const model = new FakeModel("missing");
    const line = open(model);
    model.receive(state(view(1, 1), { way: "comm" }));
    const taken = line.line("c");
    expect(commands(model.sent)).toEqual(["hello", "seen", "line"]);
    model.receive({ type: "stop_reply", id: model.sent[2]!["id"], status: "ok" });
    expect(await taken).toBe("");
  });
  it("takes one command a prompt, and says so when nobody hears it", async () => {
    const model = new FakeModel("silent");
    const line = open(model);
    model.receive(state(view(1, 1)));
    const first = line.line("n");
    expect(await line.line("n"), "a double click").toBe("");
    await vi.advanceTimersByTimeAsync(3100);
    expect(await first).toContain("use Interrupt");
    expect(commands(model.asked).filter((one) => one === "line")).toHaveLength(1);
    expect(line.shown.busy).toBe(false);
  });
  it("notices that the kernel is restarted", () => {
    const model = new FakeModel("answers");
    const line = open(model);
    model.receive(state(view(1, 1)));
    for (const slot of model.status) slot(null, "restarting");
    expect(line.shown.state).toBeNull();
    expect(line.gone).toContain("restarted");
  });
  it("acknowledges again what was not taken", async () => {
    const model = new FakeModel("silent");
    open(model);
    model.receive(state(view(1, 1)));
    await vi.advanceTimersByTimeAsync(3100);
    model.receive(state(view(1, 1)));
    expect(commands(model.asked).filter((one) => one === "seen")).toHaveLength(2);
  });
});
