// The user's file beside what ran where: graph traces and runs in two gutters, call sites and findings at the right.
import type { SourceCount, SourceMark, SourcePage } from "../data/protocol";
import type { DataSource } from "../data/source";
import { clear, h, keepFocus } from "../dom";
import { int, time } from "../format";
import type { Breakpoints } from "../data/breakpoints";
import { State } from "../state";
import { toEditor } from "./editor";
import { note } from "./call";
import { codeLine, plainText } from "./highlight";

export class SourcePane {
  readonly element = h("div.detail.d-source");
  private file: string | null = null;
  private page: SourcePage | null = null;
  private target: { file: string; line: number } | null = null;
  private key: string | null = null;
  private asked = 0;
  private revision = -1;

  constructor(
    private readonly state: State,
    private readonly source: DataSource,
    private readonly visible: () => boolean,
    private readonly breakpoints: Breakpoints | null,
    signal: AbortSignal,
  ) {
    breakpoints?.onChange(() => this.paintBreaks(), signal);
    this.element.addEventListener("click", (event) => this.toggle(event), { signal });
    this.element.addEventListener("keydown", (event) => this.moveInGutter(event), { signal });
    state.on(["selection", "tab", "overview", "ledger"], () => this.update(), signal);
  }

  goto(file: string, line: number): void {
    this.target = { file, line };
    this.update();
  }

  private update(): void {
    if (!this.visible()) return;
    const row = this.state.row();
    const moved = this.state.selection.key !== this.key;
    if (moved) this.key = this.state.selection.key;
    const fallback = this.state.ledger.rows.find((item) => item.file)?.file ?? null;
    const wanted = this.target?.file ?? (moved ? (row?.file ?? this.file ?? fallback) : (this.file ?? row?.file ?? fallback));
    const line = this.target?.line ?? (moved ? row?.line : null) ?? null;
    this.target = null;
    if (!wanted) {
      clear(this.element, note("No source is stored yet: the recording keeps the text of your own files as their functions are traced."));
      return;
    }
    const revision = this.state.overview?.revision ?? 0;
    if (wanted === this.file && this.page && revision === this.revision) {
      if (line) this.scroll(line);
      return;
    }
    const other = wanted !== this.file;
    this.file = wanted;
    this.revision = revision;
    const asked = ++this.asked;
    this.source
      .ask("source", { file: wanted })
      .then(({ result }) => {
        if (asked !== this.asked || JSON.stringify(result) === JSON.stringify(this.page)) {
          if (asked === this.asked && line) this.scroll(line);
          return;
        }
        const top = this.element.querySelector(".scroll")?.scrollTop ?? 0;
        this.page = result;
        keepFocus(this.element, () => this.paint(wanted));
        const scroller = this.element.querySelector(".scroll");
        if (other || line) this.scroll(line ?? result?.marks[0]?.line ?? 1);
        else if (scroller) scroller.scrollTop = top;
      })
      .catch((error: Error) => clear(this.element, note(error.message)));
  }

  private scroll(line: number): void {
    const scroller = this.element.querySelector<HTMLElement>(".scroll");
    const item = this.element.querySelector<HTMLElement>(`li[data-line="${line}"]`);
    if (!scroller || !item) return;
    for (const old of this.element.querySelectorAll("li.at")) old.classList.remove("at");
    item.classList.add("at");
    if (scroller.scrollHeight > scroller.clientHeight + 1) {
      scroller.scrollTop += item.getBoundingClientRect().top - scroller.getBoundingClientRect().top - scroller.clientHeight / 4;
    }
  }

  private paint(file: string): void {
    const page = this.page;
    if (!page) {
      clear(this.element, note(`The text of \`${file}\` is not in the recording: only your own files are stored.`));
      return;
    }
    const counts = new Map(page.counts.map((count) => [count.line, count]));
    const end = page.first + page.lines.length - 1;
    const trimmed = page.lines.length < page.total ? ` lines ${page.first} to ${end} of ${page.total}` : "";
    clear(
      this.element,
      h(
        "div.shead",
        {},
        h("span.g", {}, "trace"),
        h("span.g", {}, "run"),
        h("span.ln"),
        this.chooser(page),
        toEditor({ file: page.file, line: page.marks[0]?.line ?? 1, name: page.name }, this.source.kind === "kernel", "to-editor"),
        h("span.dim", {}, trimmed),
        page.counted ? null : h("span.dim.uncounted", { title: "record with lines=True, --lines" }, "lines not counted (--lines)"),
        h("span.key", {}, h("i.kt"), "Python at graph trace", h("i.kp"), "Python at run (a body)"),
      ),
      h("div.scroll", { tabindex: 0, "data-focus": "source", role: "region", "aria-label": `Source of ${page.name}` }, h("ol.src", {}, ...page.lines.map((line, i) => this.line(page.first + i, codeLine(line), page, counts.get(page.first + i))))),
    );
    this.paintBreaks();
  }

  /** What a line printed, and which call or graph trace it was. */
  private prints(counts: SourceCount): HTMLElement {
    const who = (call: number | null): string => (call === null ? "at trace" : `call #${call}`);
    const more = counts.more_prints ? `\nand ${int(counts.more_prints)} more prints` : "";
    const [call, text] = counts.prints[0]!;
    const link = h("button.lk", { type: "button" }, who(call));
    link.addEventListener("click", () => {
      this.state.select({ call });
      this.state.open("call");
    });
    const others = counts.prints.length - 1 + counts.more_prints;
    return h(
      "span.printed",
      { title: counts.prints.map(([one, said]) => `${who(one)} printed: ${said}`).join("\n") + more },
      call === null ? "at trace" : link,
      " printed ",
      h("q", {}, text.split("\n")[0]!),
      others ? ` +${int(others)}` : "",
    );
  }

  /** In a live notebook the number of a line where calls can stop is a button: a body's line, or a node's call site. */
  private lineNumber(number: number, body: SourceMark | undefined, marks: readonly SourceMark[]): HTMLElement {
    const site = marks.find((mark) => mark.kind === "site" && mark.line === number);
    const row = site && this.state.row(site.key ?? null);
    const code = plainText(this.page?.lines[number - this.page.first] ?? []).trim();
    const stops = this.breakpoints && code && !code.startsWith("#") && (body || row);
    if (!stops) return h("span.ln", {}, number);
    const where = body || !row ? "" : State.body(row);
    return h("button.ln", { type: "button", tabindex: -1, "data-line": number, "data-where": where, "aria-label": where ? `Line ${number}, stop calls of ${where}` : `Line ${number}, stop here` }, number);
  }

  private placeOf(button: HTMLElement): { where: string } | { file: string; line: number } {
    const where = button.dataset["where"];
    return where ? { where } : { file: this.file ?? "", line: Number(button.dataset["line"]) };
  }

  private paintBreaks(): void {
    const buttons = [...this.element.querySelectorAll<HTMLElement>("button.ln")];
    for (const button of buttons) {
      const known = this.breakpoints?.at(this.placeOf(button));
      button.setAttribute("aria-pressed", String(known !== undefined));
      button.classList.toggle("off", known?.enabled === false);
      button.title = known ? `Breakpoint ${known.number}: click to remove it` : "Click to stop here";
    }
    if (!buttons.some((button) => button.tabIndex === 0) && buttons[0]) buttons[0].tabIndex = 0;
  }

  private toggle(event: Event): void {
    const button = (event.target as HTMLElement).closest<HTMLElement>("button.ln");
    if (!button || !this.breakpoints) return;
    void this.breakpoints.toggle(this.placeOf(button)).then((problem) => problem && (button.title = problem));
  }

  /** One line number is in the order of Tab; arrows move from it. */
  private moveInGutter(event: KeyboardEvent): void {
    const button = (event.target as HTMLElement).closest<HTMLElement>("button.ln");
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!button || by === undefined) return;
    const all = [...this.element.querySelectorAll<HTMLElement>("button.ln")];
    const next = all[all.indexOf(button) + by];
    if (!next) return;
    button.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
    event.preventDefault();
  }

  private chooser(page: SourcePage): HTMLElement {
    const { files } = this.state.ledger;
    if (files.length < 2) return h("span.fn", { title: page.file }, page.name);
    const choice = h("select.fn", { "aria-label": "File", "data-focus": "file" }, ...files.map(([file, name]) => h("option", { value: file, selected: file === page.file }, name)));
    choice.addEventListener("change", () => this.goto(choice.value, 1));
    return choice;
  }

  private line(number: number, code: HTMLElement, page: SourcePage, counts: SourceCount | undefined): HTMLElement {
    const marks: readonly SourceMark[] = page.marks;
    const inside = marks.filter((mark) => mark.line <= number && number <= mark.end);
    const traced = inside.find((mark) => mark.kind === "function");
    const body = inside.find((mark) => mark.kind === "body");
    const begins = (mark: SourceMark | undefined): boolean => mark?.line === number;
    const notes = marks.filter((mark) => mark.line === number && (mark.kind === "site" || mark.kind === "finding"));
    const count = (n: number | null | undefined): string => (n === null || n === undefined ? "–" : `${int(n)}×`);
    const bodies = begins(body) ? marks.filter((mark) => mark.kind === "body" && mark.line === number) : [];
    const calls = bodies.reduce((sum, mark) => sum + (mark.count ?? 0), 0);
    return h(
      "li",
      { "data-line": number },
      h("span.g.gt", { class: `g gt${traced ? " on" : ""}${begins(traced) ? " a" : ""}` }, counts ? times(counts.traced) : begins(traced) ? count(traced!.count) : ""),
      h("span.g.gr", { class: `g gr${body ? " py" : ""}${begins(body) ? " a" : ""}` }, counts ? times(counts.ran) : begins(body) ? h("b", { class: calls ? "" : "zero" }, count(calls)) : begins(traced) && traced!.runs !== undefined ? count(traced!.runs) : ""),
      this.lineNumber(number, body, marks),
      code,
      bodies.length || notes.length || counts?.words.length || counts?.prints.length
        ? h(
            "span.nt",
            {},
            ...bodies.slice(0, 1).map((mark) => h("span", {}, mark.mean_ns == null ? "" : `mean ${time(mark.mean_ns)}, in all ${time(mark.total_ns ?? 0)}`)),
            ...(counts?.words ?? []).map((words) => h("span.inside", { title: words }, words)),
            counts?.prints.length ? this.prints(counts) : null,
            ...notes.map((mark) =>
              mark.kind === "finding"
                ? h("span", { title: mark.message ?? "" }, h("span", { class: `sev sev-${(mark.severity ?? "note")[0]!.toUpperCase()}` }, (mark.severity ?? "note")[0]!.toUpperCase()), ` ${mark.name}`)
                : h("span", {}, `${mark.name} ${count(mark.count)}${mark.gradients ? ` + ${int(mark.gradients)} ∇` : ""}`),
            ),
          )
        : null,
    );
  }
}

const times = (text: string | undefined): string => (text === "-" ? "–" : (text ?? "").replace(/x$/, "×"));
