// Entry points of the bundle: anywidget's `render`, and the HTML report, which finds its data in the page.
import { decodeContainer, EmbeddedSource, type Embedded } from "./data/embedded";
import { KernelSource } from "./data/kernel";
import type { AnyModel } from "./data/widget";
import type { Place } from "./data/source";
import { h } from "./dom";
import { Panel } from "./panel";
import { together } from "./together";

export async function render({ model, el }: { model: AnyModel; el: HTMLElement }): Promise<() => void> {
  const life = new AbortController();
  const root = h("div");
  const source = new KernelSource(model, life.signal);
  // While this panel lives, the static form of the same recording is not shown beside it.
  const hidden = document.createElement("style");
  const id = String(model.get("panel_id")).replace(/[^\w-]/g, "");
  const rule = `.pfd-static-${id}{display:none!important}.jp-OutputArea-child:has(.pfd-static-${id}){display:none!important}`;
  el.append(hidden, root);
  const panel = new Panel(root, source, { layout: "panel" }, life.signal);
  source.onLink((link) => {
    // Without a kernel and without anything loaded there is nothing to see here: the static form takes over.
    const empty = link.state === "lost" && !panel.state.overview;
    root.hidden = empty;
    hidden.textContent = empty ? "" : rule;
  }, life.signal);
  const ready = panel.refresh();
  const place = model.get("place") as Place | null;
  if (place && Object.keys(place).length) void ready.then(() => panel.show(place));
  return () => {
    life.abort();
    panel.dispose();
    hidden.remove();
  };
}

export async function report(root: HTMLElement, data: string): Promise<Panel> {
  const life = new AbortController();
  const { data: embedded, arrays } = await decodeContainer<Embedded>(data);
  const panel = new Panel(root, new EmbeddedSource(embedded, arrays), { layout: "report" }, life.signal);
  await panel.refresh();
  return panel;
}

/** A report of one recording, or of several: what the page holds decides. */
async function show(page: HTMLElement): Promise<void> {
  const recordings = [...document.querySelectorAll(".pfd-recording")].map((element) => () => element.textContent ?? "");
  const all = document.getElementById("pfd-together");
  if (all) {
    await together(page, all.textContent ?? "", recordings);
  } else {
    const panel = await report(page, recordings[0]?.() ?? "");
    Object.assign(page, { panel });
    // A report shows a call at once: its first failure, else the slowest that was kept.
    const place = JSON.parse(page.dataset["place"] ?? "{}") as { call?: number };
    if (place.call !== undefined) void panel.show(place);
  }
  document.getElementById("pfd-plain")?.remove();
  page.dataset["ready"] = "true";
}

const page = document.getElementById("pfd-report");
if (page) {
  show(page).catch((error: Error) => {
    page.textContent = `This report cannot be drawn here (${error.message}). The plain tables are below.`;
  });
}

export default { render };
