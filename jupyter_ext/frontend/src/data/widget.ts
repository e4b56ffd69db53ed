// The parts of anywidget's and JupyterLab's objects that the panel uses; all but `model` may be missing elsewhere.

interface Signal<T> {
  connect(slot: (sender: unknown, value: T) => void): unknown;
  disconnect(slot: (sender: unknown, value: T) => void): unknown;
}

export interface Kernel {
  clientId: string;
  statusChanged?: Signal<string>;
  disposed?: Signal<void>;
  sendControlMessage?(
    message: unknown,
    expectReply: boolean,
    disposeOnDone: boolean,
  ): { done: Promise<{ content?: ControlReply }> };
}

export interface ControlReply {
  status?: string;
  [name: string]: unknown;
}

export interface AnyModel {
  get(name: string): unknown;
  send(content: unknown, callbacks?: unknown, buffers?: ArrayBuffer[]): void;
  on(event: string, callback: (...args: never[]) => void): void;
  off(event: string, callback: (...args: never[]) => void): void;
  widget_manager?: { kernel?: Kernel | null };
}

/** Hears the kernel's messages for this widget, and of its end: `died` by its status, else because it was shut down. */
export function listen(
  model: AnyModel,
  onMessage: (...args: never[]) => void,
  onGone: (died: boolean) => void,
  signal: AbortSignal,
): void {
  const kernel = model.widget_manager?.kernel;
  const onStatus = (_: unknown, status: string): void => {
    if (["restarting", "autorestarting", "dead", "terminating"].includes(status)) onGone(true);
  };
  const onDisposed = (): void => onGone(false);
  model.on("msg:custom", onMessage);
  kernel?.statusChanged?.connect(onStatus);
  kernel?.disposed?.connect(onDisposed);
  signal.addEventListener("abort", () => {
    model.off("msg:custom", onMessage);
    kernel?.statusChanged?.disconnect(onStatus);
    kernel?.disposed?.disconnect(onDisposed);
  });
}
