// One message over the kernel's control channel, which is served while a cell is busy or stopped.
import type { AnyModel, ControlReply } from "./widget";

const REQUEST = "pyfunc_debug_request";
const TIMEOUT_MS = 3000;

/** Sends it and waits for the reply; undefined where there is no such channel. Rejects when nobody answers in time. */
export function askControl(model: AnyModel, content: Record<string, unknown>): Promise<ControlReply> | undefined {
  const kernel = model.widget_manager?.kernel;
  if (!kernel?.sendControlMessage) return undefined;
  const header = {
    msg_id: crypto.randomUUID?.() ?? `${Date.now()}.${Math.random()}`,
    msg_type: REQUEST,
    session: kernel.clientId,
    username: "",
    date: new Date().toISOString(),
    version: "5.3",
  };
  const message = {
    channel: "control",
    header,
    parent_header: {},
    metadata: {},
    content: { ...content, widget: model.get("panel_id") },
    buffers: [],
  };
  try {
    const done = kernel.sendControlMessage(message, true, true).done.then((reply) => reply.content ?? {});
    // An unknown control message gets no reply at all.
    const late = new Promise<never>((_, no) => window.setTimeout(() => no(new Error("late")), TIMEOUT_MS));
    return Promise.race([done, late]);
  } catch {
    return undefined;
  }
}
