// What opens below a call: one value looked at closely, another call beside it, the body run again.
import type { CallDetail, Compared, Looked, Replayed, Tested, Value } from "../data/protocol";
import type { DataSource } from "../data/source";
import { clear, h, keepFocus, prose } from "../dom";
import { plural, sig3, typeText } from "../format";
import { copy } from "./editor";
import { figure } from "./figures";

const POLL_MS = 300;

export class Looks {
  readonly element = h("section.look", { hidden: true, "aria-label": "A closer look", tabindex: -1, "data-focus": "look" });
  private call: CallDetail | null = null;
  private asked = 0;
  private edits: Record<string, string> = {};

  constructor(
    private readonly source: DataSource,
    private readonly select: (call: number) => void,
    signal: AbortSignal,
  ) {
    signal.addEventListener("abort", () => this.asked++);
  }

  /** Another call: what was open of the one before closes. */
  follow(call: CallDetail | null): void {
    if (call?.id === this.call?.id) {
      this.call = call;
      return;
    }
    this.call = call;
    this.edits = {};
    this.close();
  }

  close(): void {
    this.asked++;
    this.element.hidden = true;
    clear(this.element);
  }

  /** One value, large. */
  value(value: Value): void {
    const { call } = this;
    if (!call) return;
    const side = value.role.replace("grad ", "");
    const owner = value.role.startsWith("grad ") && call.kind === "forward" ? call.gradients[0] : call.id;
    if (owner === undefined) return;
    void this.ask("value", { call: owner, side, position: value.position }, (result: Looked | null) =>
      this.show(`${value.path}  ${typeText(value.dtype, value.shape)}`, ...(result ? this.looked(result, call) : [h("p.dim", {}, "This value is not in the recording.")])),
    );
  }

  private looked(value: Looked, call: CallDetail): (HTMLElement | null)[] {
    const more = value.count - value.frames.length;
    return [
      h("p.code", {}, value.text),
      value.frames.length
        ? h("div.imgs.frames", {}, ...value.frames.map((frame, i) => figure(frame, `[${i}]`)), more > 0 ? h("p.dim", {}, `and ${plural(more, "more image")}`) : null)
        : null,
      value.picture
        ? h("div.large", {}, figure(value.picture, value.path), h("p.dim", {}, value.picture.kind === "diverging" ? `blue ${sig3(value.picture.low)}, white 0, orange ${sig3(value.picture.high)}` : value.picture.kind === "gray" ? `black ${sig3(value.picture.low)}, white ${sig3(value.picture.high)}` : `colours from ${sig3(value.picture.low)} to ${sig3(value.picture.high)}`))
        : null,
      value.table ? h("p.code.elements", {}, value.table.join("  ")) : null,
      value.kept === "full" ? null : this.keep(call),
    ];
  }

  /** How to keep a node's values; in a live notebook a click does it. */
  keep(call: CallDetail): HTMLElement {
    const node = call.body?.function ?? call.name;
    const words = h("span", {}, ...prose(`Elements were not kept: record with \`values={"${node}": "full"}\` to see them. `));
    if (!this.source.act) return h("p.keep", {}, words);
    const said = h("span", { role: "status" });
    const button = h("button.btn.sm", { type: "button", "data-focus": "keep" }, "Keep them");
    button.addEventListener("click", () => {
      void this.source.act!("keep", { node }).then((told) => clear(said, ` ${String(told)}`), (error: Error) => clear(said, ` ${error.message}`));
    });
    return h("p.keep", {}, words, button, said);
  }

  /** Asks for the other call. */
  compareWith(pinned: number | null): void {
    const { call } = this;
    if (!call) return;
    const input = h("input.code", { type: "number", min: 1, value: pinned ?? call.previous ?? call.next ?? "", "aria-label": "Number of the other call", "data-focus": "other-call" });
    const go = h("button.btn.sm", { type: "button", "data-focus": "compare-go" }, "Compare");
    const answer = h("div");
    const ask = (): void => {
      const other = Number(input.value);
      if (!Number.isInteger(other) || other < 1) return;
      void this.ask("compare", { left: call.id, right: other }, (result: Compared | null) => clear(answer, result ? this.compared(result) : h("p.dim", {}, `Call #${other} is not in this recording.`)), (why) => clear(answer, h("p", {}, why)));
    };
    go.addEventListener("click", ask);
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") ask();
    });
    this.show(`#${call.id} beside another call`, h("p.form", {}, h("label", {}, "call # ", input), go, h("span.dim", {}, " (Pin marks the one to compare with)")), answer);
    if (input.value) ask();
  }

  private compared(pair: Compared): HTMLElement {
    const head = (id: number): HTMLElement => {
      const link = h("button.lk", { type: "button", "data-focus": `side-${id}` }, `#${id}`);
      link.addEventListener("click", () => this.select(id));
      return h("th.l", { scope: "col" }, link);
    };
    return h(
      "table.grid.sides",
      { "aria-label": "Two calls side by side" },
      h("thead", {}, h("tr", {}, h("th.l", { colspan: 2, scope: "colgroup" }, "value"), head(pair.left), head(pair.right), h("th.l", { scope: "col" }, "difference"))),
      h("tbody", {}, ...pair.rows.map((row) => h(
        "tr",
        {},
        h("td.l.dim", {}, row.role),
        h("td.l.code", {}, row.path),
        ...[0, 1].map((i) => h("td.l.side", { title: row.texts[i] ?? "" }, row.pictures[i] ? figure(row.pictures[i]!, "") : null, h("span.code", {}, row.texts[i] ?? "missing"))),
        h("td.l", {}, row.difference ? figure(row.difference, "") : null, row.equal === true ? "equal" : row.largest !== null ? `max |Δ| ${sig3(row.largest)}` : row.equal === false ? "differs" : "not known: not kept"),
      ))),
    );
  }

  /** The body again: as it was, with other inputs, under the debugger. */
  replay(): void {
    const { call } = this;
    if (!call || !this.source.act) return;
    const inputs = call.values.filter((value) => value.role === "in");
    const answer = h("div", { role: "status" });
    const fields = inputs.map((value) => {
      const input = h("input.code", { type: "text", placeholder: `${value.path}, as recorded`, value: this.edits[value.path] ?? "", "aria-label": `Input ${value.path}, a Python expression`, spellcheck: "false", "data-focus": `input-${value.path}` });
      input.addEventListener("input", () => (this.edits[value.path] = input.value));
      input.addEventListener("keydown", (event) => {
        if (event.key === "Enter") run(false);
      });
      return h("label", {}, h("span.code", {}, value.path), input);
    });
    const run = (debugger_: boolean): void => void this.run(call, debugger_, answer);
    const button = (name: string, title: string, debugger_: boolean): HTMLElement => {
      const made = h("button.btn.sm", { type: "button", title, "data-focus": `replay-${name}` }, name);
      made.addEventListener("click", () => run(debugger_));
      return made;
    };
    this.show(
      `${call.name} #${call.id} again`,
      h("p.dim", {}, "The body runs outside its graph on the recorded inputs, with all its effects. Expressions may use the inputs by name, ", h("code", {}, "np"), " and ", h("code", {}, "tf"), "."),
      h("div.form", {}, ...fields, button("Run again", "Runs the body through", false), button("Under the debugger", "Stops at the body's first line: tab Stop", true)),
      answer,
    );
  }

  /** The call as a pytest file; without a kernel, the lines that write it. */
  test(recording: string): void {
    const { call } = this;
    if (!call) return;
    const title = `${call.name} #${call.id} as a test`;
    if (!this.source.act) {
      const lines = `import pyfunc_debug as pfd\npfd.open(${JSON.stringify(recording)}).call(${call.id}).to_pytest("test_call_${call.id}.py")`;
      this.show(title, h("p.dim", {}, "These lines write a pytest file that runs the body again on the recorded inputs and asks for what came of it."), this.file(lines));
      return;
    }
    const asked = ++this.asked;
    const ask = (save: boolean): void => {
      this.source.act!("test", { call: call.id, save }).then(
        (told) => asked === this.asked && this.show(title, ...this.tested(told as Tested, () => ask(true))),
        (error: Error) => asked === this.asked && this.show(title, h("p", {}, error.message), /kept in full/.test(error.message) ? this.keep(call) : null),
      );
    };
    ask(false);
  }

  private tested(test: Tested, save: () => void): (HTMLElement | null)[] {
    const button = h("button.btn.sm", { type: "button", title: `Writes ${test.name} next to the notebook`, "data-focus": "test-save" }, `Save ${test.name}`);
    button.addEventListener("click", save);
    return [
      h("p.dim", {}, "A pytest file: it runs the body again on the recorded inputs, outside its graph, and asks for what came of it."),
      ...test.notes.map((one) => h("p.warn", {}, ...prose(one))),
      this.file(test.text, button),
      test.saved ? h("p", { role: "status" }, "Saved ", h("code", {}, test.saved), test.arrays ? ", with its arrays in " : "", test.arrays ? h("code", {}, test.arrays) : null, ".") : null,
    ];
  }

  /** A text to copy. */
  private file(text: string, ...more: HTMLElement[]): HTMLElement {
    const button = h("button.btn.sm", { type: "button", "data-focus": "test-copy" }, "Copy");
    button.addEventListener("click", () => copy(text, button, "select the text to copy it"));
    return h("div", {}, h("div.form", {}, button, ...more), h("pre.testfile", { tabindex: 0, "aria-label": "The text" }, text));
  }

  private async run(call: CallDetail, debugger_: boolean, answer: HTMLElement): Promise<void> {
    const asked = ++this.asked;
    clear(answer, "running…");
    try {
      let told = (await this.source.act!("replay", { call: call.id, edits: this.edits, debugger: debugger_ })) as Replayed;
      while (told.running && asked === this.asked) {
        await new Promise((resolve) => window.setTimeout(resolve, POLL_MS));
        told = (await this.source.act!("replayed", {})) as Replayed;
      }
      if (asked === this.asked) clear(answer, ...this.told(told, call));
    } catch (error) {
      const words = error instanceof Error ? error.message : String(error);
      if (asked === this.asked) clear(answer, h("p", {}, h("b", {}, "It did not run: "), words), /not kept in full/.test(words) ? this.keep(call) : null);
    }
  }

  private told(told: Replayed, call: CallDetail): (HTMLElement | null)[] {
    if (told.error !== undefined) return [h("p.failed", {}, h("b", {}, "✕ "), told.error)];
    const edited = told.edited?.length ? `with ${told.edited.join(", ")} edited` : "on the recorded inputs";
    const same = told.same === true ? "It returned what was recorded." : told.same === false ? "It returned something else than was recorded: it depends on more than its inputs." : "";
    return [
      h("p", {}, `It ran ${edited}. `, same),
      h(
        "table.grid.sides",
        { "aria-label": "What it returned" },
        h("thead", {}, h("tr", {}, h("th.l", { scope: "col" }, "out"), h("th.l", { scope: "col" }, "now"), h("th.l", { scope: "col" }, `recorded in #${call.id}`), h("th.l", { scope: "col" }, "difference"))),
        h("tbody", {}, ...(told.rows ?? []).map((row) => h(
          "tr",
          {},
          h("td.l.code", {}, row.path),
          ...[0, 1].map((i) => h("td.l.side", { title: row.texts[i] ?? "" }, row.pictures[i] ? figure(row.pictures[i]!, "") : null, h("span.code", {}, row.texts[i] ?? "nothing"))),
          h("td.l", {}, row.largest === null ? "not known" : row.largest === 0 ? "equal" : `max |Δ| ${sig3(row.largest)}`),
        ))),
      ),
    ];
  }

  private async ask<T>(method: "value" | "compare", params: never | object, show: (result: T | null) => void, fail?: (why: string) => void): Promise<void> {
    const asked = ++this.asked;
    try {
      const { result } = await this.source.ask(method, params as never);
      if (asked === this.asked) show(result as T | null);
    } catch (error) {
      if (asked !== this.asked) return;
      const why = error instanceof Error ? error.message : String(error);
      if (fail) fail(why);
      else this.show("Not available", h("p", {}, why));
    }
  }

  private show(title: string, ...content: (HTMLElement | null)[]): void {
    const close = h("button.btn.sq", { type: "button", "aria-label": "Close", "data-focus": "look-close" }, "×");
    close.addEventListener("click", () => this.close());
    const wasOpen = !this.element.hidden;
    keepFocus(this.element, () => clear(this.element, h("div.lhead", {}, h("b", {}, title), h("span.sp"), close), ...content));
    this.element.hidden = false;
    const roomy = (one: HTMLElement | null): boolean => one !== null && one.scrollHeight > one.clientHeight + 1 && getComputedStyle(one).overflowY === "auto";
    const pane = [".detail", ".cols"].map((one) => this.element.closest<HTMLElement>(one)).find(roomy);
    if (pane) {
      // What just opened is what one wants to see: from its top where it is larger than the pane.
      const [own, box] = [this.element.getBoundingClientRect(), pane.getBoundingClientRect()];
      if (!wasOpen || own.top > box.bottom || own.height > box.height / 2) pane.scrollTop += Math.min(own.top - box.top, Math.max(0, own.bottom - box.bottom));
    } else if (!wasOpen) this.element.scrollIntoView({ block: "nearest" });
  }
}
