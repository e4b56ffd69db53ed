// The bodies that run now, as somebody asked to see them: nothing is stopped, and nothing moves until one looks again.
import { placeOf, titleOf, type RunningView, type StopLine } from "../data/stops";
import { clear, h, text } from "../dom";
import { seconds } from "../format";
import { codeLine } from "./highlight";

/** Lines of the source around the one that runs. */
const AROUND = 3;

export class Running {
  readonly element = h("section.running", { "aria-label": "Bodies that run" });
  private readonly found = h("div");
  private readonly said = h("span", { role: "status" });

  private readonly heading = h("h4", { hidden: true }, "Other bodies");
  private readonly pausing = h("button.btn", { type: "button", title: "Stop one of the bodies that run, at its next line; else the next call", "data-focus": "pause-body" }, "Pause a running body");
  private stopped = false;

  constructor(private readonly stops: StopLine) {
    const look = h("button.btn", { type: "button", title: "Show what runs in bodies now; nothing is stopped", "data-focus": "look-now" }, "Look");
    look.addEventListener("click", () => void this.look());
    this.pausing.addEventListener("click", () => void this.pause());
    this.element.append(this.heading, h("div.sbar", {}, look, this.pausing, this.said), this.found);
  }

  /** A stop is there, or is over: what was seen before is old, and beside a stop the other bodies can be looked at. */
  beside(stopped: boolean): void {
    if (stopped === this.stopped) return;
    this.stopped = stopped;
    this.heading.hidden = !stopped;
    this.pausing.hidden = stopped;
    clear(this.found);
    text(this.said, "");
  }

  private async look(): Promise<void> {
    const answer = await this.stops.look();
    if (typeof answer === "string") return text(this.said, answer);
    // Beside a stop, those that are stopped too are in the list of waiting calls.
    const running = answer.running.filter((one) => !(this.stopped && one.stopped));
    const count = running.length;
    const other = this.stopped ? "other " : "";
    text(this.said, count ? `${count} ${other}${count === 1 ? "body runs" : "bodies run"}, as of ${new Date().toLocaleTimeString()}` : `No ${other}body runs now.`);
    clear(this.found, ...running.map((one) => this.call(one, answer.now_ns)));
  }

  private async pause(): Promise<void> {
    text(this.said, "waiting for the next line of a body…");
    const problem = await this.stops.pause();
    text(this.said, problem || "A body stops at its next line; if all return before, the next call stops.");
  }

  private call(one: RunningView, now_ns: number): HTMLElement {
    const since = one.since_ns === null ? "" : `, for ${seconds((now_ns - one.since_ns) / 1e9)}`;
    const at = one.source.findIndex((line) => line.current);
    return h(
      "div.runs",
      {},
      h("p", {}, h("b", {}, titleOf(one)), ` ${one.stopped ? "is stopped" : "runs"} on ${one.thread}${since}`),
      h("ol.src", {}, ...one.source.slice(Math.max(0, at - AROUND), at + AROUND + 1).map((line) =>
        h("li", { class: line.current ? "cur" : "" }, h("span.mark", { "aria-hidden": "true" }, line.current ? "▶" : ""), h("span.ln", {}, line.line), codeLine(line.pieces ?? [["", line.text]])))),
      h("ul.frames", {}, ...[...one.frames].reverse().map((frame, i) => h("li", { class: i ? "" : "cur", title: `${frame.file}:${frame.line}` }, h("span.code", {}, placeOf(frame)), h("span", {}, frame.function)))),
      one.locals.length ? h("table.locals", { "aria-label": `Locals of ${titleOf(one)}` }, h("tbody", {}, ...one.locals.map((local) => h("tr", {}, h("th", { scope: "row", title: local.type }, local.name), h("td", { title: local.text }, local.text))))) : null,
    );
  }
}
