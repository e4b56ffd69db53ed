// Names and values at a stop: a tree of locals whose values can be edited, and expressions that somebody watches.
import type { Variable } from "../data/stops";
import { h } from "../dom";
import { figure } from "./figures";

/** The Python expression of a child: `x[0]`, `config['lr']`, `self.scale`. */
export function childOf(parent: string, type: string, name: string): string {
  if (name.startsWith("[") && type !== "dict") return `${parent}${name}`;
  return type === "dict" ? `${parent}[${name}]` : `${parent}.${name}`;
}

export interface Actions {
  /** Runs a statement at the prompt. */
  run(statement: string): void;
  repaint(): void;
}

/** Rows of a table. What is unfolded is kept by expression, from prompt to prompt. */
export class Variables {
  private readonly open = new Set<string>();
  private editing: string | null = null;

  constructor(private readonly actions: Actions) {}

  rows(variables: readonly Variable[]): HTMLElement[] {
    return variables.flatMap((one) => this.row(one, one.name, 0));
  }

  private row(one: Variable, expression: string, depth: number): HTMLElement[] {
    const open = this.open.has(expression);
    const many = Boolean(one.children?.length);
    const toggle = many
      ? h("button.tw", { type: "button", "aria-expanded": String(open), "aria-label": `${open ? "Fold" : "Unfold"} ${expression}`, "data-focus": `var-${expression}` }, open ? "▾" : "▸")
      : h("span.tw");
    toggle.addEventListener("click", () => {
      if (!many) return;
      if (open) this.open.delete(expression);
      else this.open.add(expression);
      this.actions.repaint();
    });
    const editable = /^[A-Za-z_]/.test(expression) && !expression.startsWith("__") && !one.failed;
    const edit = h("button.lk.edit", { type: "button", "aria-label": `Edit ${expression}`, "data-focus": `edit-${expression}` }, "edit");
    edit.addEventListener("click", () => {
      this.editing = expression;
      this.actions.repaint();
    });
    // An array's range before its elements, and whole: only the line of elements is cut at its end.
    const [, head, rest] = (one.range && /^(\S+?\[[^\]]*\]) (.*)$/s.exec(one.text)) || ["", one.text, ""];
    const cell =
      this.editing === expression
        ? this.editor(expression, one)
        : h(one.range ? "td.ranged" : "td", { title: `${one.type}: ${one.text}` }, one.picture ? figure(one.picture, "") : null, h("span.val", {}, head!, one.range ? h("b", {}, `  ${one.range}`) : null, rest ? h("span.dim", {}, `  ${rest}`) : null), editable ? edit : null);
    const name = h("th", { scope: "row", title: one.type }, toggle, one.name);
    name.style.paddingLeft = `${depth * 12}px`;
    const rows: HTMLElement[] = [h("tr", { class: one.failed ? "failed" : "" }, name, cell)];
    if (open) {
      for (const child of one.children ?? []) rows.push(...this.row(child, childOf(expression, one.type, child.name), depth + 1));
      if (one.more) rows.push(h("tr", {}, h("th"), h("td.dim", {}, `and ${one.more} more`)));
    }
    return rows;
  }

  private editor(expression: string, one: Variable): HTMLElement {
    const input = h("input.code", { type: "text", value: one.range || /^<|…$/.test(one.text) ? "" : one.text, placeholder: "a Python expression", "aria-label": `New value of ${expression}`, spellcheck: "false", "data-focus": `edit-${expression}` });
    const done = (): void => {
      this.editing = null;
      this.actions.repaint();
    };
    input.addEventListener("focus", () => input.select());
    input.addEventListener("keydown", (event) => {
      if (event.key === "Escape") done();
      if (event.key !== "Enter" || !input.value.trim()) return;
      event.preventDefault();
      done();
      this.actions.run(`!${expression} = ${input.value.trim()}`);
    });
    return h("td", {}, input);
  }
}
