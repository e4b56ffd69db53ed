// What was noticed at a call: values changed by hand, what logpoints logged and kept, hits that nobody answered.
import type { CallDetail } from "../data/protocol";
import { h, prose } from "../dom";
import { scaleOf, sparkline } from "./figures";

interface Logged {
  at: string;
  texts: string[];
  numbers: Record<string, number>;
  locals: string[];
}

interface Unanswered {
  why: string;
  inputs?: string[];
  locals?: string[];
  frames?: string[];
}

const of = <T>(call: CallDetail, rule: string): T[] => call.notices.filter((one) => one.rule === rule).map((one) => one.facts as T);

/** What somebody changed while the call was stopped: its values are not the program's own doing any more. */
export function byHand(call: CallDetail): HTMLElement | null {
  const changed = of<{ names: string[] }>(call, "changed-by-hand").flatMap((one) => one.names);
  if (!changed.length) return null;
  const names = [...new Set(changed)].flatMap((name, i) => [i ? ", " : "", /^[\w.[\]]+$/.test(name) ? h("code", {}, name) : name]);
  return h("p.warn.hand", {}, h("b", {}, "Changed by hand at a stop: "), ...names, ". What follows is not the program's own doing.");
}

/** What was logged, with a line over the calls of the node, and the locals that were kept. */
export function noticed(call: CallDetail): (HTMLElement | null)[] {
  const logged = of<Logged>(call, "logged").flatMap((one) => [
    one.texts.length
      ? section(`Logged ${place(one.at)}`, one.texts.map((text) => {
          const [name, value] = split(text);
          const trend = call.trends?.[`logged:${one.at}:${name}`];
          return [name, value, trend ? [sparkline(trend, call.id, one.numbers[name] ?? null), h("div.scale", {}, scaleOf(trend))] : []] as const;
        }))
      : null,
    one.locals.length ? section(`Locals ${place(one.at)}`, one.locals.map((text) => [...split(text), []] as const)) : null,
  ]);
  const unanswered = of<Unanswered>(call, "stop-unanswered").map((one) =>
    section(
      `Hit, but nobody could answer: ${one.why}`,
      [...(one.inputs ?? []), ...(one.locals ?? []), ...(one.frames ?? [])].map((text) => [...split(text), []] as const),
    ),
  );
  return [...logged, ...unanswered];
}

const place = (at: string): string => (at === "before" || at === "after" ? `${at} the body` : `at ${at}`);

/** `x.max() = 3.1`: the name and what it was; a text without both is a value. */
function split(text: string): [string, string] {
  const at = text.indexOf(" = ");
  return at < 0 ? ["", text] : [text.slice(0, at), text.slice(at + 3)];
}

function section(title: string, rows: (readonly [string, string, Element[]])[]): HTMLElement {
  return h(
    "table.grid.noticed",
    {},
    h("caption", {}, ...prose(title)),
    h("tbody", {}, ...rows.map(([name, value, line]) => h("tr", {}, h("th.l.code", { scope: "row", title: name }, name), h("td.l.code", { title: value }, h("span.long", {}, value)), h("td.l.hs", {}, ...line)))),
  );
}
