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
