// The line at the top: what is recorded, whether it goes on, and what it costs.
import type { DataSource, Link } from "../data/source";
import { clear, h, keepFocus, text } from "../dom";
import { clock, int } from "../format";
import type { State } from "../state";

const STATES: Record<string, string> = { recording: "recording" };

export class Header {
  readonly element = h("header.top");
  private readonly status = h("span.state", { role: "status" });
  private readonly facts = h("span.facts");
  private readonly message = h("span.msg", { role: "status" });
  private readonly file = h("span.file");
  private readonly hold = h("button.btn.hold", { type: "button", "data-focus": "hold" }, "Hold view");
  private link: Link = { state: "static" };

  constructor(
    private readonly state: State,
    private readonly source: DataSource,
    chip: HTMLElement,
    help: () => void,
    onHold: () => void,
    signal: AbortSignal,
  ) {
    const report = h("button.btn", { type: "button", "data-focus": "report", title: "Write one HTML file that opens anywhere" }, "Report");
    report.addEventListener("click", () => void this.report(report), { signal });
    this.hold.addEventListener("click", onHold, { signal });
    const question = h("button.btn.sq", { type: "button", "aria-label": "Keys and help", "data-focus": "help" }, "?");
    question.addEventListener("click", help, { signal });
    this.element.append(
      h("b.brand", {}, "pyfunc_debug"),
      this.file,
      chip,
      this.status,
      this.facts,
      this.message,
      h("span.sp"),
      ...(source.report ? [this.hold, report] : []),
      question,
    );
    state.on(["overview", "link"], () => this.paint(), signal);
    source.onLink((link) => {
      this.link = link;
      this.paint();
    }, signal);
  }

  private paint(): void {
    const overview = this.state.overview;
    if (!overview) {
      text(this.status, this.link.state === "lost" ? this.link.why : this.state.trouble || "reading…");
      return;
    }
    text(this.file, overview.name);
    this.file.title = overview.name;
    const live = overview.state === "recording";
    const elapsed = clock(overview.end_ns - Math.max(0, overview.start_ns));
    clear(
      this.status,
      live ? h("i.rec", { "aria-hidden": "true" }) : null,
      h("span", {}, live ? "recording " : `${STATES[overview.state] ?? "recorded"} `, h("b", {}, elapsed)),
    );
    this.hold.hidden = !live;
    text(this.hold, this.state.held ? "Follow" : "Hold view");
    this.hold.title = this.state.held ? "Show what has come since" : "Hold this picture still; the recording goes on";
    text(this.message, this.words());
    this.message.classList.toggle("lost", this.link.state === "lost");
    keepFocus(this.element, () => {
      const fact = (number: string, name: string, ...rest: string[]): HTMLElement =>
        h("span", { title: rest.join(" ") }, h("b", {}, number), ` ${name}`);
      clear(
        this.facts,
        fact(int(overview.calls), overview.calls === 1 ? "call" : "calls", overview.dropped ? `${int(overview.dropped)} of them not stored: budget` : ""),
        fact(int(overview.nodes), overview.nodes === 1 ? "node" : "nodes"),
        overview.errors ? fact(int(overview.errors), overview.errors === 1 ? "error" : "errors") : null,
        this.tabLink(
          "findings",
          overview.findings === null ? [h("span", {}, "findings "), h("b", {}, "–")] : [h("b", {}, int(overview.findings)), overview.findings === 1 ? " finding" : " findings"],
        ),
        this.tabLink("gil", ["GIL ", h("b", {}, overview.gil ?? (live && overview.options["gil"] !== false ? "not measured yet" : "not measured"))]),
        overview.cost === null ? null : h("span", { title: "The recorder's own share of the time, as it measured itself" }, "cost ", h("b", {}, `${(overview.cost * 100).toFixed(1)} %`)),
      );
    });
  }

  private tabLink(tab: "findings" | "gil", content: (Node | string)[]): HTMLElement {
    const button = h("button.fact", { type: "button", "data-focus": `fact-${tab}` }, ...content);
    button.addEventListener("click", () => this.state.open(tab));
    return button;
  }

  private words(): string {
    if (this.link.state === "lost") return this.link.why;
    if (this.state.held) return "this picture stands still, the recording goes on";
    const live = this.state.overview?.state === "recording";
    if (live && this.link.state === "live" && this.link.via === "comm") return "answers come between cells only";
    return "";
  }

  private async report(button: HTMLButtonElement): Promise<void> {
    button.disabled = true;
    text(this.message, "writing the report…");
    try {
      text(this.message, `written: ${await this.source.report!()}`);
    } catch (error) {
      text(this.message, `no report: ${error instanceof Error ? error.message : String(error)}`);
    }
    button.disabled = false;
  }
}
