import { afterEach, beforeEach, vi } from "vitest";

/** Time that passes only when a test says so, in something like a window that paints sixty times a second. */
export function fakeTime(): void {
  beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal("window", globalThis);
    vi.stubGlobal("requestAnimationFrame", (paint: (time: number) => void) => setTimeout(() => paint(performance.now()), 16));
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });
}
