// The list of breakpoints: condition, hits, on and off, remove; and a line to add one.
import type { Breakpoint, Breakpoints } from "../data/breakpoints";
import { clear, h, keepFocus, text } from "../dom";
import { int } from "../format";
import { matcher } from "../glob";
import { State } from "../state";

const WHENS = ["before", "after", "error", "gradient"];
const CHECK_MS = 300;
const PRESETS = ["nan(", "inf(", "shape(", "changed("];

/** What a condition may say of a node whose inputs have these names. */
export function suggestions(inputs: readonly string[]): string[] {
  const names = namesOf(inputs);
  return names.slice(0, 4).flatMap((name) => [`nan(${name})`, `changed(${name})`, `${name}.max() > 1`]).concat(["call.id > 100"]);
}

const namesOf = (inputs: readonly string[]): string[] => [...new Set(inputs.map((name) => name.match(/^\w+/)?.[0] ?? "").filter((name) => name && !/^\d/.test(name)))];

/** What the condition typed so far may become: its last word completed, by names of the node and what they can be asked. */
export function completions(typed: string, inputs: readonly string[]): string[] {
  const [, before, word] = /^(.*?)([\w.]*)$/s.exec(typed)!;
  if (!word) return before ? [] : suggestions(inputs);
  const names = namesOf(inputs);
  const known = [...names, ...names.flatMap((name) => ["shape", "dtype", "max()", "min()", "mean()", "any()", "all()"].map((what) => `${name}.${what}`)), ...PRESETS, "call.id", "call.thread", "call.kind",  "np.isnan(", "np.isinf(", "np.abs("];
  return known.filter((one) => one.startsWith(word) && one !== word).map((one) => before + one);
}

/** The name that shares most pairs of letters with this one; none if that is not half of them. */
export function nearest(name: string, names: readonly string[]): string | null {
  const pairs = (text: string): Set<string> => new Set([...text.toLowerCase()].map((letter, i, all) => letter + (all[i + 1] ?? "")));
  const own = pairs(name);
  const alike = (other: string): number => {
    const its = pairs(other);
    return (2 * [...own].filter((pair) => its.has(pair)).length) / (own.size + its.size);
  };
  const best = [...names].sort((a, b) => alike(b) - alike(a))[0];
  return best !== undefined && alike(best) >= 0.5 ? best : null;
}

export class BreakpointList {
  readonly element = h("section.bps", { "aria-label": "Breakpoints" });
  private readonly rows = h("tbody");
  private readonly table = h("table.grid.breaks", { "aria-label": "Breakpoints" });
  private readonly where = h("input.code", { type: "text", placeholder: "node, or file.py:line", "aria-label": "Where to stop", spellcheck: "false", "data-focus": "bp-where" });
  private readonly when = h("select", { "aria-label": "When to stop", "data-focus": "bp-when" }, ...WHENS.map((when) => h("option", { value: when }, when)));
  private readonly condition = h("input.code", { type: "text", placeholder: "if ...", "aria-label": "Condition", spellcheck: "false", "data-focus": "bp-if" });
  private readonly hit = h("input", { type: "number", min: 1, placeholder: "hit 1", title: "Stop from this hit on", "aria-label": "First hit that stops", "data-focus": "bp-hit" });
  private readonly conditions = h("datalist", { id: `pfd-${Math.random().toString(36).slice(2)}` });
  private readonly problem = h("span.trouble", { role: "status" });
  private timer = 0;
  private inputsOf: { where: string; names: readonly string[] } | null = null;

  constructor(
    private readonly state: State,
    private readonly breakpoints: Breakpoints,
    private readonly inputs: (node: string) => Promise<string[]>,
    signal: AbortSignal,
  ) {
    const nodes = h("datalist", { id: `pfd-${Math.random().toString(36).slice(2)}` });
    this.where.setAttribute("list", nodes.id);
    this.condition.setAttribute("list", this.conditions.id);
    const add = h("button.btn.sm", { type: "button", "data-focus": "bp-add" }, "Add");
    this.table.append(
      h("thead", {}, h("tr", {}, ...["on", "where", "when", "if", "hits", ""].map((name, i) => h("th", { scope: "col", class: i === 4 ? "" : "l" }, name || h("span.sr", {}, "remove"))))),
      this.rows,
    );
    this.element.append(h("h4", {}, "Breakpoints"), this.table, h("div.bpadd", {}, this.where, this.when, this.condition, this.hit, add, nodes, this.conditions), this.problem);
    this.where.addEventListener("focus", () => {
      const names = new Set(state.ledger.rows.filter((row) => row.type === "node" && row.call_kind === "forward").map((row) => State.body(row)));
      clear(nodes, ...[...names].map((name) => h("option", { value: name })));
    }, { signal });
    this.condition.addEventListener("focus", () => void this.suggest(this.condition, this.where.value), { signal });
    for (const input of [this.where, this.condition, this.hit]) input.addEventListener("keydown", (event) => event.key === "Enter" && this.add(), { signal });
    this.condition.addEventListener("input", () => this.typed(this.condition, this.where.value), { signal });
    add.addEventListener("click", () => this.add(), { signal });
    breakpoints.onChange(() => this.paint(), signal);
    signal.addEventListener("abort", () => window.clearTimeout(this.timer));
    this.paint();
  }

  private add(): void {
    const where = this.where.value.trim();
    if (!where) return text(this.problem, "Name a node, such as `augment*`, or a line, such as train.py:12.");
    window.clearTimeout(this.timer);
    this.timer = 0;
    void this.breakpoints.add({ where, when: this.when.value, condition: this.condition.value, ...(Number(this.hit.value) > 1 ? { hits: Number(this.hit.value) } : {}) }).then((problem) => {
      text(this.problem, problem);
      if (problem) return;
      text(this.problem, this.unknown(where));
      this.where.value = this.condition.value = this.hit.value = "";
    });
  }

  /** Says at once when no node has this name, as %pyfunc_break does. */
  private unknown(where: string): string {
    const nodes = this.state.ledger.rows.filter((row) => row.type === "node");
    const match = matcher(where);
    if (/:\d+$/.test(where) || !nodes.length || nodes.some((row) => [State.body(row), row.name].includes(where) || (/[*?[]/.test(where) && match([State.body(row), row.name], "")))) return "";
    const near = nearest(where, nodes.map((row) => State.body(row)));
    return `No node here has the name ${where} yet: the breakpoint waits for it.${near ? ` The nearest: ${near}.` : ""}`;
  }

  private typed(input: HTMLInputElement, where: string): void {
    void this.suggest(input, where);
    this.checkSoon(input);
  }

  /** Completes a condition, with the names of its node. */
  private async suggest(input: HTMLInputElement, of: string): Promise<void> {
    const where = of.trim();
    if (this.inputsOf?.where !== where) this.inputsOf = { where, names: where ? await this.inputs(where) : [] };
    clear(this.conditions, ...completions(input.value, this.inputsOf.names).map((one) => h("option", { value: one })));
  }

  /** A condition is checked by the kernel as it is typed. */
  private checkSoon(input: HTMLInputElement): void {
    window.clearTimeout(this.timer);
    const timer = (this.timer = window.setTimeout(() => {
      void this.breakpoints.check(input.value).then((problem) => {
        if (timer !== this.timer) return; // it was typed on, or added
        input.setAttribute("aria-invalid", String(problem !== ""));
        input.title = problem;
        text(this.problem, problem);
      });
    }, CHECK_MS));
  }

  private paint(): void {
    this.table.hidden = !this.breakpoints.all.length;
    keepFocus(this.element, () => clear(this.rows, ...this.breakpoints.all.map((one) => this.row(one))));
  }

  private row(one: Breakpoint): HTMLElement {
    const on = h("input", { type: "checkbox", checked: one.enabled, "aria-label": `Breakpoint ${one.number} on`, "data-focus": `bp-on-${one.number}` });
    on.addEventListener("change", () => void this.breakpoints.change(one.number, { enabled: on.checked }).then((problem) => text(this.problem, problem)));
    const condition = h("input.code", { type: "text", value: one.condition ?? "", placeholder: "always", list: this.conditions.id, "aria-label": `Condition of breakpoint ${one.number}`, spellcheck: "false", "data-focus": `bp-if-${one.number}` });
    condition.addEventListener("focus", () => void this.suggest(condition, one.where));
    condition.addEventListener("input", () => this.typed(condition, one.where));
    condition.addEventListener("change", () => {
      window.clearTimeout(this.timer);
      void this.breakpoints.change(one.number, { condition: condition.value }).then((problem) => text(this.problem, problem));
    });
    const remove = h("button.lk", { type: "button", "aria-label": `Remove breakpoint ${one.number}`, "data-focus": `bp-remove-${one.number}` }, "remove");
    remove.addEventListener("click", () => void this.breakpoints.remove(one.number).then((problem) => text(this.problem, problem)));
    const row = this.state.ledger.rows.find((item) => item.type === "node" && State.body(item) === one.where);
    const where = one.file === null ? one.where : one.where.replace(/^.*[\\/]/, "");
    return h(
      "tr",
      { "data-breakpoint": one.number, class: one.enabled ? "" : "off" },
      h("td.l", {}, on),
      h("td.l", { title: [one.where, row?.place ?? ""].filter(Boolean).join("\n") }, h("code", {}, where), one.once ? h("small", {}, " once") : null, one.first_hit > 1 ? h("small", {}, ` from hit ${one.first_hit}`) : null),
      h("td.l", {}, one.when),
      h("td.l.bpif", {}, condition, one.error ? h("small.trouble", {}, ` off: ${one.error}`) : null),
      h("td", { title: `${int(one.stopped)} of them stopped` }, int(one.hits)),
      h("td.l", {}, remove),
    );
  }
}
