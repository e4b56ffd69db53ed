// The panel's colours as the canvas needs them: resolved values, again whenever the page's theme changes.

const TOKENS = {
  bg: "--c-bg",
  bg2: "--c-bg2",
  bg3: "--c-bg3",
  fg: "--c-fg",
  dim: "--c-dim",
  line: "--c-line",
  line2: "--c-line2",
  focus: "--c-focus",
  trace: "--k-trace",
  run: "--k-run",
  held: "--k-held",
  released: "--k-released",
  wait: "--k-wait",
  gradient: "--k-gradient",
  stop: "--k-stop",
} as const;
export type Token = keyof typeof TOKENS;
export type Colours = Record<Token, string>;

export interface Theme {
  colours: Colours;
  font: string;
  dark: boolean;
}

/** Reads the tokens through a probe element: a canvas understands neither var() nor color-mix(). */
export function readTheme(root: HTMLElement): Theme {
  const probe = document.createElement("span");
  probe.hidden = true;
  // Under forced colours text would get the system's; the marks of the timeline keep their meaning.
  probe.style.setProperty("forced-color-adjust", "none");
  root.append(probe);
  const style = getComputedStyle(probe);
  probe.style.color = "var(--c-bg-probe)";
  const background = luminance(style.color);
  root.dataset["theme"] = background < 0.4 ? "dark" : "light";
  const colours = {} as Colours;
  for (const [name, token] of Object.entries(TOKENS)) {
    probe.style.color = `var(${token})`;
    colours[name as Token] = style.color;
  }
  const font = style.fontFamily || "sans-serif";
  probe.remove();
  return { colours, font, dark: background < 0.4 };
}

/** 0 black .. 1 white, of a computed colour (`rgb(...)` or `color(srgb ...)`). */
export function luminance(colour: string): number {
  const numbers = (colour.match(/[\d.]+(?:e-?\d+)?/g) ?? []).map(Number);
  const scale = colour.startsWith("color(") ? 1 : 255;
  const [r = scale, g = scale, b = scale] = numbers;
  return (0.2126 * r + 0.7152 * g + 0.0722 * b) / scale;
}

/** Calls back when JupyterLab, VS Code or the system changes theme. */
export function watchTheme(callback: () => void, signal: AbortSignal): void {
  let frame = 0;
  const later = (): void => {
    cancelAnimationFrame(frame);
    // JupyterLab swaps a style sheet after the attribute: look again when it has come.
    frame = requestAnimationFrame(() => {
      callback();
      window.setTimeout(() => !signal.aborted && callback(), 250);
    });
  };
  const observer = new MutationObserver(later);
  const options = {
    attributes: true,
    attributeFilter: ["data-jp-theme-light", "data-jp-theme-name", "data-vscode-theme-kind", "data-theme", "class", "style"],
  };
  observer.observe(document.documentElement, options);
  observer.observe(document.body, options);
  for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
    matchMedia(query).addEventListener("change", later, { signal });
  }
  signal.addEventListener("abort", () => {
    observer.disconnect();
    cancelAnimationFrame(frame);
  });
}
