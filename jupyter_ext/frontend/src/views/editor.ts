// From a line to the editor, as far as a page gets there without an extension: JupyterLab runs a command of its
// own when an element that names it is clicked (it asks first where the notebook is not trusted); VS Code takes links of
// its own; a cell is scrolled to. Everywhere else, as in Notebook 7, the place is copied.
import { h } from "../dom";

export interface Spot {
  file: string;
  line: number | null;
  /** What people call the file: `train.py`, `cell [3]`. */
  name: string;
}

/** The way to a spot; null where there is none, as for a cell in a report. */
export function toEditor(spot: Spot, live: boolean, focus: string): HTMLElement | null {
  const cell = /^cell \[(\d+)\]/.exec(spot.name)?.[1];
  if (cell !== undefined) return live ? toCell(cell, focus) : null;
  if (!/^([A-Za-z]:)?[\\/]/.test(spot.file)) return null;
  const file = spot.file.replace(/\\/g, "/");
  const place = spot.line === null ? "" : `:${spot.line}`;
  const inServer = served(file, document);
  if (inServer !== null) {
    return h("button.lk", {
      type: "button",
      title: `Opens ${spot.name}${place} in the editor`,
      "data-focus": focus,
      "data-commandlinker-command": "rendermime:handle-local-link",
      // The editor counts lines from 0 here.
      "data-commandlinker-args": JSON.stringify({ path: inServer, id: spot.line === null ? "" : `#line=${spot.line - 1}` }),
    }, "open in editor");
  }
  const lab = document.getElementById("jupyter-config-data") !== null;
  if (!lab && (!live || document.body.dataset["vscodeThemeKind"] !== undefined)) {
    return h("a.lk", { href: `vscode://file/${file.replace(/^\//, "")}${place}`, "data-focus": focus, title: "Opens the file in Visual Studio Code, if it is on this machine" }, "open in VS Code");
  }
  const why = lab && rootOf(document) ? "the file is outside of the server's folder" : "this page cannot open files";
  const button = h("button.lk", { type: "button", "data-focus": focus, title: `Copies ${spot.file}${place}: ${why}` }, "copy place");
  button.addEventListener("click", () => copy(`${spot.file}${place}`, button));
  return button;
}

/** The path of a file below the folder that a Jupyter server serves; null where it is not, or there is none. */
export function served(file: string, page: Pick<Document, "getElementById">): string | null {
  const root = rootOf(page);
  if (!root) return null;
  const folder = `${root.replace(/\\/g, "/").replace(/\/$/, "")}/`;
  // The server shortens the home folder to ~.
  const at = folder.startsWith("~/") ? file.indexOf(folder.slice(1)) : file.startsWith(folder) ? 0 : -1;
  return at < 0 ? null : file.slice(at + (folder.startsWith("~/") ? folder.length - 1 : folder.length));
}

/** The folder that the server serves; JupyterLab says it, Notebook 7 does not. */
function rootOf(page: Pick<Document, "getElementById">): string {
  try {
    return (JSON.parse(page.getElementById("jupyter-config-data")?.textContent ?? "{}") as { serverRoot?: string }).serverRoot ?? "";
  } catch {
    return "";
  }
}

function toCell(cell: string, focus: string): HTMLElement {
  const go = h("button.lk", { type: "button", "data-focus": focus, title: `Scrolls to cell [${cell}] of this notebook` }, "go to the cell");
  go.addEventListener("click", () => {
    const found = [...document.querySelectorAll<HTMLElement>(".jp-InputPrompt")].filter((one) => one.textContent?.trim() === `[${cell}]:`);
    const place = found[found.length - 1]?.closest<HTMLElement>(".jp-Cell");
    if (place) place.scrollIntoView({ block: "center" });
    else go.textContent = "the cell is not in this page";
  });
  return go;
}

/** Copies a text; where there is no clipboard, the button shows it. */
export function copy(text: string, button: HTMLElement, shown: string = text): void {
  const copied = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error("no clipboard"));
  copied.then(() => (button.textContent = "copied"), () => (button.textContent = shown));
}
