// Keys pressed in the panel stay in the panel. JupyterLab, Notebook 7 and VS Code hear keys above it: `d d` deletes a cell,
// `a` inserts one, Ctrl+Enter runs one.

/** JupyterLab's shortcuts (Lumino's CommandRegistry) stop at an element with it. Notebook 7 listens before the panel can, and
 * its rules end in `:focus`, which the focused element itself fulfils: so it must carry the attribute, not only the root. */
const SUPPRESS = "data-lm-suppress-shortcuts";

/** Saving and the list of commands: what a person may want from everywhere, and what changes no cell. */
export function belongsToHost(key: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey" | "shiftKey">): boolean {
  if (key.key === "F1") return true;
  if (key.altKey || !(key.ctrlKey || key.metaKey)) return false;
  const letter = key.key.toLowerCase();
  return key.shiftKey ? letter === "p" || letter === "c" : letter === "s";
}

/** Keeps every key that is pressed inside `root` from what is around it. */
export function keepKeys(root: HTMLElement, signal: AbortSignal): void {
  // A click between the panel's parts gives the panel the focus, not the cell that holds it.
  root.tabIndex = -1;
  root.setAttribute(SUPPRESS, "true");
  let focused: Element = root;
  root.addEventListener("focusin", (event) => {
    focused = event.target as Element;
    focused.setAttribute(SUPPRESS, "true");
  }, { signal });
  // A repaint that takes the focused element away leaves the focus in the panel, not in the page around it.
  const repainted = new MutationObserver(() => {
    const place = root.getRootNode() as Document | ShadowRoot;
    if (!root.contains(focused) && (!place.activeElement || place.activeElement === document.body)) root.focus({ preventScroll: true });
    if (!root.contains(focused)) focused = root;
  });
  repainted.observe(root, { childList: true, subtree: true });
  signal.addEventListener("abort", () => repainted.disconnect());
  for (const type of ["keydown", "keyup", "keypress"] as const) {
    root.addEventListener(type, (event) => !belongsToHost(event) && event.stopPropagation(), { signal });
  }
  // The window hears a key before the document does, where Notebook 7 listens.
  window.addEventListener("keydown", (event) => belongsToHost(event) && root.contains(event.target as Node) && lift(event.target as Element), { signal, capture: true });
}

/** Lets one key through: no element on its way is marked until all have heard it. */
function lift(target: Element): void {
  const marked: Element[] = [];
  for (let element = target.closest(`[${SUPPRESS}]`); element; element = element.parentElement?.closest(`[${SUPPRESS}]`) ?? null) {
    marked.push(element);
    element.removeAttribute(SUPPRESS);
  }
  window.setTimeout(() => marked.forEach((element) => element.setAttribute(SUPPRESS, "true")));
}
