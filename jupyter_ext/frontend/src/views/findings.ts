// What the doctor says. A finding opens to its fix, and few are open at first; its calls and its line are links.
import type { Finding } from "../data/protocol";
import type { DataSource } from "../data/source";
import { clear, h, keepFocus, prose, text } from "../dom";
import { plural } from "../format";
import type { State } from "../state";
import { figure, histogram } from "./figures";
import { note } from "./call";
import { codeLine } from "./highlight";

/** So many are open at first, as many as the terminal shows: each can be read without a click. */
const FEW = 5;

export class FindingsPane {
  readonly element = h("div.detail.d-findings");
  /** Findings that somebody opened or closed. */
  private readonly chosen = new Map<string, boolean>();
  private revision = -1;

  constructor(
    private readonly state: State,
    private readonly source: DataSource,
    private readonly goto: (file: string, line: number) => void,
    private readonly visible: () => boolean,
    private readonly allOpen: boolean,
    private readonly signal: AbortSignal,
  ) {
    state.on(["tab", "overview"], () => this.update(), signal);
  }

  private update(): void {
    const overview = this.state.overview;
    if (!this.visible() || !overview || overview.revision === this.revision) return;
    this.revision = overview.revision;
    this.source
      .ask("findings", {})
      .then(({ result }) => keepFocus(this.element, () => this.paint(result.findings)))
      .catch((error: Error) => clear(this.element, note(error.message)));
  }

  private paint(findings: Finding[] | null): void {
    if (findings === null) {
      clear(this.element, h("div.none", {}, h("p", {}, h("b", {}, "The doctor has not looked at this recording.")),
        h("p.dim", {}, "It looks when a recording ends, and on ", h("code", {}, "%pyfunc_doctor"), " or ", h("code", {}, "recording.findings()"), ": retraces and their cause, failures that nobody saw, gradients that are zero, GIL waits, each with its line and its fix.")));
      return;
    }
    if (!findings.length) {
      clear(this.element, h("div.none", {}, h("p", {}, h("b", {}, "Nothing found.")), h("p.dim", {}, "The doctor looked at what this recording holds and has nothing to report.")));
      return;
    }
    clear(this.element, h("ul.finds", {}, ...findings.map((finding, i) => this.item(finding, i, this.allOpen || findings.length <= FEW))));
  }

  private item(finding: Finding, index: number, openAtFirst: boolean): HTMLElement {
    const key = `${finding.rule}:${finding.node}:${finding.line}:${index}`;
    const opened = this.chosen.get(key) ?? openAtFirst;
    const letter = finding.severity[0]!.toUpperCase();
    const title = h("button.rule", { type: "button", "aria-expanded": String(opened), "data-focus": `rule-${key}` }, `${finding.severity}: ${finding.rule}`);
    const item = h("li", { class: opened ? "open" : "" });
    title.addEventListener("click", () => {
      const now = !item.classList.contains("open");
      item.classList.toggle("open", now);
      title.setAttribute("aria-expanded", String(now));
      this.chosen.set(key, now);
    });
    const place = h("button.lk", { type: "button" }, finding.place);
    place.addEventListener("click", () => finding.file && finding.line && this.goto(finding.file, finding.line));
    item.append(
      h("div.fr", {}, h("span", { class: `sev sev-${letter}`, "aria-hidden": "true" }, letter), title, finding.name ? h("code", {}, finding.name) : null, finding.place ? place : null, h("span.cnt.dim", {}, [finding.count > 1 ? plural(finding.count, "call") : "", finding.confidence ?? ""].filter(Boolean).join(", "))),
      h("p", {}, ...prose(finding.message)),
    );
    if (finding.fix || finding.calls.length || finding.evidence?.length) item.append(this.fix(finding));
    return item;
  }

  private fix(finding: Finding): HTMLElement {
    const copy = h("button.btn.sm", { type: "button" }, "Copy");
    copy.addEventListener("click", () => {
      const done = navigator.clipboard?.writeText(finding.fix) ?? Promise.reject(new Error("no clipboard"));
      done.then(() => text(copy, "Copied"), () => text(copy, "Select the text")).finally(() => {
        const timer = window.setTimeout(() => text(copy, "Copy"), 1500);
        this.signal.addEventListener("abort", () => window.clearTimeout(timer), { once: true });
      });
    });
    const calls = finding.calls.slice(0, 6).map((id) => {
      const link = h("button.lk", { type: "button" }, `#${id}`);
      link.addEventListener("click", () => {
        const row = finding.node === null ? undefined : this.state.rowOfNode(finding.node, false);
        this.state.select({ call: id, key: row?.key ?? this.state.selection.key });
        this.state.open("call");
      });
      return link;
    });
    const inputs = (finding.inputs ?? []).map((one) => {
      const seen = one.picture ? figure(one.picture, one.path) : histogram(one.histogram, one.min, one.max);
      return h("li", {}, seen, h("span.code", {}, `${one.path} ${one.text}`));
    });
    const code = /[\n=(]/.test(finding.fix) && !/^[A-Z][^=]*\.$/.test(finding.fix);
    return h(
      "div.fix",
      {},
      h("div.fh", {}, finding.fix ? h("b", {}, `Fix${finding.place ? `, ${finding.place}` : ""}`) : null, ...(calls.length ? [h("span.dim", {}, "calls"), ...calls] : []), h("span.sp"), finding.page ? h("span.dim", { title: "Its section in the manual" }, finding.page) : null, finding.fix ? copy : null),
      inputs.length ? h("ul.evidence.inputs", { "aria-label": `Inputs of call #${finding.calls[0]}` }, ...inputs) : null,
      finding.evidence?.length ? h("ul.evidence", {}, ...finding.evidence.map((line) => h("li", {}, ...prose(line)))) : null,
      !finding.fix ? null : code ? h("pre", { tabindex: 0 }, ...finding.code.flatMap((line) => [codeLine(line), "\n"])) : h("p", {}, ...prose(finding.fix)),
    );
  }
}
