import { describe, expect, it } from "vitest";
import { served } from "../src/views/editor";

const page = (config: string | null): Pick<Document, "getElementById"> => ({ getElementById: () => (config === null ? null : ({ textContent: config } as HTMLElement)) });

describe("a file that the Jupyter server serves", () => {
  it("is named from the server's folder, also where that is shortened to the home folder", () => {
    expect(served("/srv/work/pkg/train.py", page('{"serverRoot": "/srv/work"}'))).toBe("pkg/train.py");
    expect(served("/home/me/work/train.py", page('{"serverRoot": "~/work"}'))).toBe("train.py");
    expect(served("C:/Users/me/work/train.py", page('{"serverRoot": "C:\\\\Users\\\\me\\\\work"}'))).toBe("train.py");
  });

  it("has no name outside of it, or where the page does not say what it serves", () => {
    expect(served("/srv/workshop/train.py", page('{"serverRoot": "/srv/work"}'))).toBeNull();
    expect(served("/srv/work/train.py", page("{}"))).toBeNull();
    expect(served("/srv/work/train.py", page("no JSON"))).toBeNull();
    expect(served("/srv/work/train.py", page(null))).toBeNull();
  });
});
