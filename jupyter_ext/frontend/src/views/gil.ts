// The GIL tab: waiting over time and who waited behind whom. What was not measured is said in words.
import type { GilPage, GilStage, GilWorst } from "../data/protocol";
import type { DataSource } from "../data/source";
import { breakable, clear, h, keepFocus, prose } from "../dom";
import { inUnit, int, percent, sig3, time, unitFor, unitOf, waited } from "../format";
import type { State } from "../state";
import { readTheme } from "../theme";
import { makePaints, swatch } from "../timeline/paint";
import { makeScale, ticks } from "../timeline/scale";
import { note } from "./call";

export class GilPane {
  readonly element = h("div.detail.d-gil");
  private page: GilPage | null = null;
  private revision = -1;
  private readonly chart = h("canvas.contention", { role: "img" });

  constructor(
    private readonly state: State,
    private readonly source: DataSource,
    private readonly root: HTMLElement,
    private readonly visible: () => boolean,
    signal: AbortSignal,
  ) {
    state.on(["tab", "overview"], () => this.update(), signal);
    state.on("theme", () => this.draw(), signal);
    const observer = new ResizeObserver(() => this.draw());
    observer.observe(this.element);
    signal.addEventListener("abort", () => observer.disconnect());
  }

  private update(): void {
    const overview = this.state.overview;
    if (!this.visible() || !overview || overview.revision === this.revision) return;
    this.revision = overview.revision;
    this.source
      .ask("gil", {})
      .then(({ result }) => {
        this.page = result;
        keepFocus(this.element, () => this.paint());
      })
      .catch((error: Error) => clear(this.element, note(error.message)));
  }

  private paint(): void {
    const page = this.page;
    if (!page) return;
    if (page.grade === null) {
      const off = this.state.overview?.options["gil"] === false;
      const why = off ? "It was switched off for this recording (`gil=False`, `--no-gil`)." : (page.why ?? "No probe gave numbers for these calls.");
      clear(
        this.element,
        h("div.none", {}, h("p", {}, h("b", {}, "The GIL was not measured. "), ...prose(why)),
          h("p.dim", {}, "When it is measured, this place shows how long each body waited for the GIL, who held it meanwhile, and what fewer or more parallel calls would change."),
          ...(page.loops ?? []).map((loop) => h("p", {}, ...prose(loop.sentence))),
          ...page.process.map((line) => h("p", {}, ...prose(line)))),
      );
      return;
    }
    const measured = page.measured ?? 0;
    const calls = page.calls ?? 0;
    const some = measured < calls ? `, ${int(measured)} of ${int(calls)} calls` : "";
    const grades = (page.grades ?? []).map((grade) => `${grade.words} (${grade.name})`).join("; ");
    const series = page.series;
    clear(
      this.element,
      this.inShort(page.stages),
      h("div.gcols", {}, this.blame(page), h("ul.verdicts", {}, ...(page.loops ?? []).map((loop) => h("li", {}, ...prose(loop.sentence))), ...page.nodes.map((node) => h("li", {}, ...plain(node.sentence))), ...page.process.map((line) => h("li.dim", {}, ...plain(line))))),
      h("div.gtop", {}, h("h3", {}, "Contention ", h("small", { title: page.why ?? "" }, `${grades}${some}`)),
        h("span.legend", {}, series?.waiting ? h("span", {}, swatch("wait"), "threads waiting") : null, series?.held ? h("span", { title: "A body held the GIL" }, swatch("held"), "held by a body") : null, series?.held && series.traces ? h("span", { title: "A graph trace was under way: it runs Python outside of any body" }, swatch("trace"), "graph trace") : null,
          series?.held && series.elsewhere ? h("span", { title: "Turns of threads in no body, tracing among them, where another thread wanted the GIL when they ended. Turns that nobody waited for are not measured" }, swatch("elsewhere"), "by other Python") : null)),
      series?.waiting || series?.held ? this.chart : h("p.empty", {}, "Not drawn over time: an upper bound is not a measurement."),
      page.stages.length ? this.stages(page.stages) : null,
      this.worst(page.worst),
    );
    this.draw();
  }

  private worst(calls: readonly GilWorst[]): HTMLElement {
    if (!calls.length) return h("p.empty.gsec", {}, "No call waited for the GIL for longer than the noise of the measurement.");
    const unit = unitOf(calls.map((call) => call.wait_ns));
    const inside = calls.some((call) => call.reacquire_ns !== null);
    return h(
      "table.grid.worst.gsec",
      {},
      h("caption", {}, h("b", {}, "Longest waits")),
      h("thead", {}, h("tr", {}, h("th.l", { scope: "col" }, "call"), h("th.l", { scope: "col" }, "thread"), h("th", { scope: "col" }, `before ${unit.name}`), inside ? h("th", { scope: "col" }, `inside ${unit.name}`) : null, h("th.l", { scope: "col" }, "who ran meanwhile"))),
      h(
        "tbody",
        {},
        ...calls.map((call) => {
          const link = h("button.lk", { type: "button", "data-focus": `worst-${call.call}` }, `${call.gradient ? "∇ " : ""}${call.name} #${call.call}`);
          link.addEventListener("click", () => this.choose(call));
          const short = (ns: number): string => waited(ns, call.resolution_ns, call.grade, (x) => inUnit(x, unit));
          const who = call.blame.map(([holder, ns]) => `${holder} ${time(ns)}`).join(", ");
          return h("tr", {}, h("td.l", {}, link), h("td.l", {}, call.thread), h("td", {}, short(call.wait_ns)), inside ? h("td", {}, call.reacquire_ns === null ? "–" : short(call.reacquire_ns)) : null, h("td.l.whom", { title: who }, who || "not recorded"));
        }),
      ),
    );
  }

  private choose(call: GilWorst): void {
    const row = this.state.rowOfNode(call.node, call.gradient);
    this.state.select({ call: call.call, key: row?.key ?? this.state.selection.key });
    this.state.open("call");
  }

  /** "What if" in one line, of the stage that can gain most: the tables are further down. */
  private inShort(stages: readonly GilStage[]): HTMLElement | null {
    const gain = (stage: GilStage): number => Math.max(1, ...stage.ceilings.map((ceiling) => ceiling.speedup));
    const best = [...stages].sort((a, b) => gain(b) - gain(a))[0];
    if (!best) return null;
    const more = h("button.lk", { type: "button", "data-focus": "whatif-more" }, stages.length > 1 ? `all ${stages.length}` : "why");
    more.addEventListener("click", () => this.element.querySelector(".gsec.ifs")?.scrollIntoView({ block: "nearest" }));
    return h(
      "p.ifline",
      { "aria-label": "What if, in short" },
      h("b", {}, "What if "), h("code", {}, "num_parallel_calls"), " of ", h("code", {}, breakable(best.name)), " were ",
      ...best.ceilings.flatMap((ceiling) => {
        const now = ceiling.calls === best.now;
        return [h("span.if", { class: now ? "if now" : "if", title: ceiling.why }, h("b", {}, ceiling.calls), now ? " now" : ` ≤ ×${ceiling.speedup.toFixed(1)}`), " "];
      }),
      best.now === -1 ? h("span.if.now", {}, "now AUTOTUNE") : null,
      more,
    );
  }

  private stages(stages: readonly GilStage[]): HTMLElement {
    const most = Math.max(...stages.flatMap((stage) => stage.ceilings.map((ceiling) => ceiling.speedup)), 1);
    const share = (value: number | null): string => (value === null ? "not measured" : `${percent(value)} %`);
    return h(
      "div.gsec.ifs",
      {},
      h("h3.gcap", {}, "What if ", h("code", {}, "num_parallel_calls"), h("small", {}, stages.every((stage) => stage.now == null) ? " were another: at most this much faster than 1" : " were another: at most this much faster than now")),
      h("div.stages", {}, ...stages.map((stage) =>
        h(
          "div.stage",
          {},
          h("p", {}, h("b", {}, stage.name), h("span.dim", {}, ` in ${stage.function}, ${stage.present ?? ""}: `), `${sig3(stage.at_once)} at once; of its threads' time Python ${share(stage.python_share)}, GIL wait ${share(stage.wait_share)}, pool ${stage.pool_share === null ? "not known" : share(stage.pool_share)}`),
          h(
            "table.grid.whatif",
            { "aria-label": `What num_parallel_calls can bring to ${stage.name}` },
            h(
              "tbody",
              {},
              ...stage.ceilings.map((ceiling) => {
                const bar = h("i");
                bar.style.width = `${(ceiling.speedup / most) * 100}%`;
                const now = ceiling.calls === stage.now;
                return h("tr", { class: now ? "now" : "" }, h("th", { scope: "row" }, ceiling.calls, now ? h("small", {}, " now") : null), h("td.mean", {}, h("span.bar", { "aria-hidden": "true" }, bar)), h("td", {}, now ? "as now" : `at most ×${ceiling.speedup.toFixed(1)}`), h("td.l.whom", {}, ceiling.why));
              }),
            ),
          ),
          ...(stage.without ?? []).map(([name, speedup]) => h("p", {}, "without ", h("code", {}, name), `: up to ×${speedup.toFixed(1)}`)),
          ...(stage.cures ?? []).map((cure) => h("p", {}, ...prose(cure))),
        ),
      )),
      h("p.dim.gcap", {}, `For a pool of ${stages[0]!.pool} ${stages[0]!.pool === 1 ? "thread" : "threads"}, as many as cores. What a body does in C (a BLAS that uses all cores, memory) cannot be seen.`),
    );
  }

  private blame(page: GilPage): HTMLElement {
    if (!page.holders.length) return h("p.none.dim", {}, "It was not recorded who held the GIL meanwhile.");
    const largest = Math.max(1, ...page.matrix.flatMap((node) => Object.values(node.blame)));
    // Of the largest: few digits are read at a glance, and what is small beside it matters less.
    const unit = unitFor(largest / 100);
    const of = page.blame_of === null ? "" : `, the last ${int(page.blame_of)} calls`;
    const waited = page.matrix.filter((node) => Object.values(node.blame).some((ns) => ns > 0));
    const others = page.matrix.length - waited.length;
    const body = waited.map((node) =>
      h(
        "tr",
        {},
        h("th.l", { scope: "row", title: node.name }, breakable(node.name)),
        ...page.holders.map((holder) => {
          const ns = node.blame[holder] ?? 0;
          const cell = h("td", { class: ns ? "" : "z" }, ns ? inUnit(ns, unit) : "0");
          cell.style.setProperty("--a", String((ns / largest) * 0.55));
          return cell;
        }),
        h("td.tt", {}, inUnit(Object.values(node.blame).reduce((a, b) => a + b, 0), unit)),
      ),
    );
    return h(
      "table.grid.blame",
      {},
      h("caption", {}, h("b", {}, "Blame"), h("span.dim", { title: "How long the row's calls waited while the column held the GIL" }, ` ${unit.name} the row waited for the column${of}`)),
      h("thead", {}, h("tr", {}, h("th.l", {}, ""), ...page.holders.map((holder) => h("th", { scope: "col", title: meaning(holder), class: holder.startsWith("pyfunc_debug") ? "ours" : "" }, meaning(holder) ? h("abbr", {}, headOf(holder)) : headOf(holder))), h("th", { scope: "col" }, h("b", {}, "all")))),
      h("tbody", {}, ...body, others ? h("tr", {}, h("td.l.dim.rest", { colspan: page.holders.length + 2 }, `${int(others)} ${others === 1 ? "other waits" : "others wait"} for nobody, as far as measured`)) : null),
    );
  }

  private draw(): void {
    const series = this.page?.series;
    const width = Math.floor(this.element.clientWidth) - 16;
    if (!series || !this.visible() || width < 50 || !this.chart.isConnected) return;
    const { colours, font } = readTheme(this.root);
    const ratio = devicePixelRatio || 1;
    const small = width < 720;
    const tall = small ? { waiting: 16, held: 14 } : { waiting: 32, held: 28 };
    const second = series.waiting ? tall.waiting + (small ? 9 : 12) : 4;
    const height = (series.held ? second + tall.held : tall.waiting + 4) + 18;
    this.chart.width = width * ratio;
    this.chart.height = height * ratio;
    this.chart.style.width = `${width}px`;
    this.chart.style.height = `${height}px`;
    const c = this.chart.getContext("2d");
    if (!c) return;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    const { folds, overview } = this.state;
    const scale = makeScale({ start: folds.at(series.start_ns), end: folds.at(series.end_ns) }, 44, width - 48, folds, 4);
    const waiting = series.waiting ?? [];
    const most = Math.max(1, Math.ceil(Math.max(0, ...waiting)));
    const area = (values: readonly number[], top: number, tall: number, high: number, colour: string | CanvasPattern, below: readonly number[] = []): void => {
      c.fillStyle = colour;
      const wide = scale.width / values.length;
      values.forEach((value, i) => {
        const under = Math.min(below[i] ?? 0, high);
        const size = (Math.min(value, high - under) / high) * tall;
        if (size > 0) c.fillRect(scale.place(scale.view.start + (i * (scale.view.end - scale.view.start)) / values.length), top + tall * (1 - under / high) - size, wide + 0.3, size);
      });
      c.strokeStyle = colours.line2;
      c.strokeRect(scale.left - 0.5, top - 0.5, scale.width + 1, tall + 1);
    };
    if (series.waiting) area(waiting, 4, tall.waiting, most, colours.wait);
    if (series.held) {
      const { fill } = makePaints(c, colours, font, ratio);
      if (series.traces) area(series.traces, second, tall.held, 1, fill.trace);
      area(series.held, second, tall.held, 1, colours.held);
      if (series.elsewhere) area(series.elsewhere, second, tall.held, 1, fill.elsewhere, series.held);
    }
    c.font = `10.5px ${font}`;
    c.fillStyle = colours.dim;
    c.textBaseline = "middle";
    c.textAlign = "right";
    if (series.waiting) {
      c.fillText(String(most), 38, 7);
      if (!small) c.fillText("0", 38, tall.waiting + 2);
    }
    if (series.held) {
      c.fillText("100 %", 38, second + 3);
      if (!small) c.fillText("0", 38, second + tall.held - 2);
    }
    c.textAlign = "left";
    c.textBaseline = "top";
    for (const tick of ticks(scale.view, scale.width, 90, folds).major) c.fillText(tick.label, Math.min(scale.x(tick.ns), width - c.measureText(tick.label).width), height - 13);
    for (const stop of overview?.stops ?? []) {
      if (stop.queued || stop.end_ns === null) continue;
      const from = scale.x(stop.start_ns);
      const wide = Math.max(4, scale.x(stop.end_ns) - from);
      c.fillStyle = colours.stop;
      c.fillRect(from, 4, wide, height - 22);
      c.strokeStyle = colours.fg;
      c.strokeRect(from + 0.5, 4.5, wide - 1, height - 23);
    }
    const mean = waiting.reduce((a, b) => a + b, 0) / Math.max(1, waiting.length);
    const said = waiting.length ? `On average ${sig3(mean)} threads wait for the GIL, at most ${sig3(Math.max(...waiting))}.` : "How much of the time a body holds the GIL.";
    this.chart.setAttribute("aria-label", said);
  }
}

const WORDS: [RegExp, string][] = [
  [/other Python threads: IOPub/, "IOPub is the notebook's own thread, which carries what cells print"],
  [/other Python threads/, "Threads of the program or of the notebook that ran Python outside of any body"],
  [/woke up late/, "The GIL was free, and the waiting thread had not run yet: the machine was busy"],
  [/threads of pyfunc_debug itself|pyfunc_debug writer/, "The threads that record and show this: no part of your program"],
  [/a py_function not recorded/, "A body that was not recorded (--nodes), or that began before"],
];

const headOf = (holder: string): HTMLElement => breakable(holder.replace("other Python threads: ", "other: "));

/** What a term means, for a hover; empty if it says so itself. */
const meaning = (text: string): string => WORDS.find(([term]) => term.test(text))?.[1] ?? "";

/** A sentence with its terms explained where one points at them. */
function plain(sentence: string): (string | HTMLElement)[] {
  return prose(sentence).flatMap((part) => {
    if (typeof part !== "string") return [part];
    const found = WORDS.find(([term]) => term.test(part));
    if (!found) return [part];
    const at = found[0].exec(part)!;
    return [part.slice(0, at.index), h("abbr", { title: found[1], tabindex: 0 }, at[0]), part.slice(at.index + at[0].length)];
  });
}
