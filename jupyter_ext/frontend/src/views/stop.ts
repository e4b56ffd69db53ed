// The place of a stopped call. Until breakpoints fill it, it says how to get there.
import { h } from "../dom";
import type { State } from "../state";

export class StopPane {
  readonly element = h("div.detail.d-stop");

  constructor(state: State) {
    void state;
    this.element.append(
      h(
        "div.none",
        {},
        h("p", {}, h("b", {}, "No call is stopped.")),
        h("p.dim", {}, "A call that hits a breakpoint takes this place: its source with the line, its locals, a console and the calls that queue behind it."),
        h("p.dim", {}, "Set one with ", h("code", {}, "%pyfunc_break NODE"), ", ", h("code", {}, 'pfd.break_on("NODE")'), " or ", h("code", {}, "breakpoint()"), " inside a body."),
      ),
    );
  }
}
