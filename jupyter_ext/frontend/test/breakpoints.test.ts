import { expect, test } from "vitest";

import { Breakpoints, type Breakpoint } from "../src/data/breakpoints";
import type { StopLine } from "../src/data/stops";

/** A kernel that answers one question after the other. */
class Kernel {
  list: Partial<Breakpoint>[] = [];
  private number = 0;

  async breakpoints(content: Record<string, unknown>): Promise<Record<string, unknown>> {
    await Promise.resolve();
    if (content["action"] === "add") this.list = [...this.list, { number: ++this.number, where: String(content["where"]), when: (content["when"] ?? "before") as Breakpoint["when"], file: null }];
    if (content["action"] === "remove") this.list = this.list.filter((one) => one.number !== content["number"]);
    return { status: "ok", breakpoints: this.list };
  }
}

test("a second press undoes the first, also before the kernel has answered", async () => {
  const kernel = new Kernel();
  const breakpoints = new Breakpoints(kernel as unknown as StopLine);
  await Promise.all([breakpoints.toggle({ where: "decode" }), breakpoints.toggle({ where: "decode" })]);
  expect(kernel.list).toEqual([]);
  await Promise.all([1, 2, 3].map(() => breakpoints.toggle({ where: "loss" }, "gradient")));
  expect(kernel.list.map((one) => [one.where, one.when])).toEqual([["loss", "gradient"]]);
});
