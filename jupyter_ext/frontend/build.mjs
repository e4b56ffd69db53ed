// Builds the panel: one ES module and one style sheet, into the folder that the Python package ships.
import { build } from "esbuild";

const out = process.argv[2] ?? "../static";

await build({
  entryPoints: { panel: "src/index.ts" },
  outdir: out,
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "none",
  charset: "utf8",
  logLevel: "warning",
});
await build({
  entryPoints: { panel: "src/style/panel.css" },
  outdir: out,
  bundle: true,
  minify: true,
  target: ["chrome111", "firefox113", "safari16.4"],
  logLevel: "warning",
});
