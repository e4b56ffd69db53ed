// The GIL tab: waiting over time and who waited behind whom. What was not measured is said in words.
import type { GilPage } from "../data/protocol";
import type { DataSource } from "../data/source";
import { clear, h, keepFocus } from "../dom";
import { int, inUnit, percent, sig3, time, unitOf } from "../format";
import type { State } from "../state";
import { readTheme } from "../theme";
import { swatch } from "../timeline/paint";
import { makeScale, ticks } from "../timeline/scale";
import { note } from "./call";

const GRADES: Record<string, string> = {
  native: "measured by the native probe",
  "op-start": "from TensorFlow's profiler: wait = entry − op start",
  bound: "at most: an upper bound",
  mixed: "of several grades",
};

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
      const why = off ? "It was switched off for this recording (`gil=False`, `--no-gil`)." : "No probe gave numbers for these calls.";
      clear(
        this.element,
        h("div.none", {}, h("p", {}, h("b", {}, "The GIL was not measured. "), ...note(why).firstElementChild!.childNodes),
          h("p.dim", {}, "With a probe on, this place shows how long each body waited for the GIL, who held it meanwhile, and what fewer or more parallel calls would change.")),
      );
      return;
    }
    const nodes = page.nodes.filter((node) => node.calls > 0);
    clear(
      this.element,
      h("div.gtop", {}, h("h3", {}, "Contention ", h("small", {}, `over the recording, ${GRADES[page.grade] ?? page.grade}`)),
        h("span.legend", {}, h("span", {}, swatch("wait"), "threads waiting"), page.series?.held ? h("span", {}, swatch("held"), "GIL held by a body") : null)),
      this.chart,
      h("div.gcols", {}, this.blame(page), h("dl.verdicts", {}, ...nodes.map((node) => this.verdict(node)))),
    );
    this.draw();
  }

  private verdict(node: GilPage["nodes"][number]): HTMLElement {
    const all = node.wait_ns + node.body_ns || 1;
    const [holder, ns] = Object.entries(node.blame).sort((a, b) => b[1] - a[1])[0] ?? [null, 0];
    const behind = holder ? `, ${percent(ns / (node.wait_ns || 1))} % of that behind ${holder === node.name ? "itself" : holder}` : "";
    const text = node.wait_ns / node.calls < 5e4 ? `waits ${time(node.wait_ns / node.calls)} a call: no GIL waits above 50 µs on average` : `waits ${percent(node.wait_ns / all)} % of its time${behind}`;
    const held = node.held_ns === null ? "" : ` It holds the GIL ${time(node.held_ns / node.calls)} a call.`;
    return h("div", {}, h("dt", {}, node.name), h("dd", {}, `${text}.${held}`));
  }

  private blame(page: GilPage): HTMLElement {
    if (!page.holders.length) return h("p.none.dim", {}, "Who held the GIL meanwhile was not recorded.");
    const unit = unitOf(page.nodes.flatMap((node) => Object.values(node.blame)));
    const largest = Math.max(1, ...page.nodes.flatMap((node) => Object.values(node.blame)));
    const of = page.blame_of < (this.state.overview?.calls ?? 0) ? `, the last ${int(page.blame_of)} calls` : "";
    const body = page.nodes.map((node) =>
      h(
        "tr",
        {},
        h("th.l", { scope: "row" }, node.name),
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
      h("caption", {}, h("b", {}, "Blame"), h("span.dim", {}, ` ${unit.name} the row waited while the column held the GIL${of}`)),
      h("thead", {}, h("tr", {}, h("th.l", {}, ""), ...page.holders.map((holder) => h("th", { scope: "col" }, holder)), h("th", { scope: "col" }, h("b", {}, "all")))),
      h("tbody", {}, ...body),
    );
  }

  private draw(): void {
    const series = this.page?.series;
    const width = Math.floor(this.element.clientWidth) - 16;
    if (!series || !this.visible() || width < 50 || !this.chart.isConnected) return;
    const { colours, font } = readTheme(this.root);
    const ratio = devicePixelRatio || 1;
    const height = series.held ? 100 : 60;
    this.chart.width = width * ratio;
    this.chart.height = height * ratio;
    this.chart.style.width = `${width}px`;
    this.chart.style.height = `${height}px`;
    const c = this.chart.getContext("2d");
    if (!c) return;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    const scale = makeScale({ start: series.start_ns, end: series.end_ns }, 44, width - 48);
    const most = Math.max(1, Math.ceil(Math.max(...series.waiting)));
    const area = (values: readonly number[], top: number, tall: number, high: number, colour: string): void => {
      c.fillStyle = colour;
      const wide = scale.width / values.length;
      values.forEach((value, i) => {
        const size = (Math.min(value, high) / high) * tall;
        if (size > 0) c.fillRect(scale.left + i * wide, top + tall - size, wide + 0.3, size);
      });
      c.strokeStyle = colours.line2;
      c.strokeRect(scale.left - 0.5, top - 0.5, scale.width + 1, tall + 1);
    };
    area(series.waiting, 4, 32, most, colours.wait);
    if (series.held) area(series.held, 44, 28, 1, colours.held);
    c.font = `10.5px ${font}`;
    c.fillStyle = colours.dim;
    c.textBaseline = "middle";
    c.textAlign = "right";
    c.fillText(String(most), 38, 7);
    c.fillText("0", 38, 34);
    if (series.held) {
      c.fillText("100 %", 38, 47);
      c.fillText("0", 38, 70);
    }
    c.textAlign = "left";
    c.textBaseline = "top";
    for (const tick of ticks(scale.view, scale.width, 90).major) c.fillText(tick.label, scale.x(tick.ns), height - 20);
    const mean = series.waiting.reduce((a, b) => a + b, 0) / Math.max(1, series.waiting.length);
    this.chart.setAttribute("aria-label", `On average ${sig3(mean)} threads wait for the GIL, at most ${sig3(Math.max(...series.waiting))}.`);
  }
}
