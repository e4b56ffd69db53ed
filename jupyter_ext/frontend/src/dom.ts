// Elements without markup: what comes from a program is only ever text.

type Child = Node | string | number | null | undefined | false;
type Props = Record<string, string | number | boolean | null | undefined | ((event: never) => void)>;

/** `h("td.num", {title}, text)`: tag with classes, attributes and listeners (`onclick`), children as text or nodes. */
export function h<K extends keyof HTMLElementTagNameMap>(
  spec: K | `${K}.${string}`,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const [tag, ...classes] = spec.split(".");
  const element = document.createElement(tag as K);
  if (classes.length) element.className = classes.join(" ");
  apply(element, props);
  add(element, children);
  return element;
}

const SVG = "http://www.w3.org/2000/svg";
export function svg(tag: string, props: Props = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS(SVG, tag);
  apply(element, props);
  add(element, children);
  return element;
}

function apply(element: Element, props: Props): void {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value as EventListener);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

function add(element: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(typeof child === "number" ? String(child) : child);
  }
}

/** Text with `code` between backticks. */
export function prose(text: string): (string | HTMLElement)[] {
  return text.split(/(`[^`]+`)/).map((part) => (part.length > 2 && part.startsWith("`") ? h("code", {}, breakable(part.slice(1, -1))) : part));
}

/** A name that may be broken where its words end: behind `_`, `.`, `(` and before a capital. */
export const breakable = (name: string): HTMLElement => {
  const whole = h("span");
  for (const part of name.split(/(?<=[_.(]|[a-z](?=[A-Z]))/)) whole.append(...(whole.childNodes.length ? [h("wbr")] : []), part);
  return whole;
};

/** Sets text only if it changed, so that a repaint neither moves a selection nor wakes a screen reader. */
export function text(element: Element, value: string): void {
  if (element.textContent !== value) element.textContent = value;
}

export const clear = (element: Element, ...children: Child[]): void => {
  element.replaceChildren();
  add(element, children);
};

/** Keeps the focused element's `data-focus` name over a repaint. */
export function keepFocus(root: HTMLElement, repaint: () => void): void {
  const active = (root.getRootNode() as Document | ShadowRoot).activeElement;
  const name = active instanceof HTMLElement && root.contains(active) ? active.dataset["focus"] : undefined;
  const inTable = name !== undefined && active?.closest("tbody") != null;
  repaint();
  if (name !== undefined && active && !root.contains(active)) {
    const again = root.querySelector<HTMLElement>(`[data-focus="${CSS.escape(name)}"]`);
    // A row that has scrolled away hands the focus to the row that Tab would reach.
    const stop = inTable ? root.querySelector<HTMLElement>('tbody [tabindex="0"]') : null;
    (again ?? stop)?.focus({ preventScroll: true });
  }
}

/**
 * Makes the click of a press on a named button that was made again before it was let go: the browser makes none then, and
 * nobody knows that a repaint came in between.
 */
export function keepClicks(root: HTMLElement, signal: AbortSignal): void {
  const named = (event: Event): HTMLElement | null => (event.target as HTMLElement).closest<HTMLElement>("button[data-focus]");
  let pressed: HTMLElement | null = null;
  root.addEventListener("pointerdown", (event) => (pressed = event.button === 0 ? named(event) : null), { signal });
  root.addEventListener("pointerup", (event) => {
    const was = pressed, now = named(event);
    pressed = null;
    if (was && now && !root.contains(was) && was.dataset["focus"] === now.dataset["focus"]) now.click();
  }, { signal });
}

/**
 * Calls `act` when somebody presses and lets go on one row, also when the rows are made again in between: while a recording
 * grows, that happens several times a second, and the browser then makes no click of it.
 */
export function onPress(body: HTMLElement, key: string, act: (event: MouseEvent) => void, signal: AbortSignal): void {
  let pressed: string | null = null;
  const rowOf = (event: Event): string | null => (event.target as HTMLElement).closest(`[${key}]`)?.getAttribute(key) ?? null;
  body.addEventListener("pointerdown", (event) => {
    pressed = event.button === 0 ? rowOf(event) : null;
    const target = event.target as HTMLElement;
    if (target.hasPointerCapture?.(event.pointerId)) target.releasePointerCapture(event.pointerId); // touch: else it stays with a row that goes
  }, { signal });
  body.addEventListener("pointerup", (event) => {
    const same = pressed !== null && pressed === rowOf(event);
    pressed = null;
    if (same) act(event);
  }, { signal });
  // A click without a pointer: a screen reader's, or a program's.
  body.addEventListener("click", (event) => event.detail === 0 && act(event), { signal });
}
