// Which rows of a long table exist as elements: those in sight and a few about them.

/** Browsers lay out no element taller than about 17 million pixels; rows beyond are reached by a finer scrollbar. */
export const MAX_HEIGHT = 8_000_000;

export interface Window {
  first: number;
  count: number;
  /** Height of the whole table in px. */
  height: number;
  /** Offset of the first row in px. */
  top: number;
}

/** The window of a table of `total` rows of `row` px, scrolled to `scroll` in a box of `box` px. */
export function windowOf(total: number, row: number, scroll: number, box: number, spare = 6): Window {
  const full = total * row;
  const height = Math.min(full, MAX_HEIGHT);
  const visible = Math.ceil(box / row) + 1;
  const position = full <= MAX_HEIGHT ? scroll / row : (scroll / Math.max(1, height - box)) * Math.max(0, total - box / row);
  const first = Math.max(0, Math.min(Math.floor(position) - spare, total - visible - spare));
  const count = Math.max(0, Math.min(total - first, visible + 2 * spare));
  const top = full <= MAX_HEIGHT ? first * row : scroll - (position - first) * row;
  return { first, count, height, top: Math.max(0, top) };
}

/** Where to scroll so that a row is in sight: the present place if it is, else as little as needed, or the middle from afar. */
export function scrollTo(index: number, total: number, row: number, scroll: number, box: number): number {
  const full = total * row;
  const height = Math.min(full, MAX_HEIGHT);
  const toScroll = (position: number): number =>
    full <= MAX_HEIGHT ? position * row : (position / Math.max(1, total - box / row)) * (height - box);
  const above = toScroll(index);
  const below = toScroll(index + 1 - (box - 2) / row);
  const most = Math.max(0, height - box);
  const clamp = (place: number): number => Math.min(Math.max(0, place), most);
  if (scroll <= above && scroll >= below) return scroll;
  const far = scroll > above + box || scroll < below - box;
  if (far) return clamp(toScroll(index + 0.5 - box / row / 2));
  return clamp(scroll > above ? above : below);
}
