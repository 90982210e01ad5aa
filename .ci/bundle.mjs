// What the one line adds to a minimal app: prints the size of its bundle without and with the library, and what of the
// library is in it. The sources are marked as the build marks them, so that no build is needed first.
import { build, transformSync } from "esbuild"
import { readFileSync } from "node:fs"
import { relative } from "node:path"
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import { annotate } from "./pure.mjs"

const root = fileURLToPath(new URL("..", import.meta.url))

const app = (/** @type {boolean} */ isCompacted) => `
import * as Chat from "effect/ai/Chat"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
${isCompacted ? `import * as CompactedModel from "effect-compaction/CompactedModel"` : ""}

const plain = Layer.effect(
  LanguageModel.LanguageModel,
  LanguageModel.make({ generateText: () => Effect.succeed([]), streamText: () => Stream.empty })
)
const program = Effect.gen(function*() {
  const chat = yield* Chat.empty
  return (yield* chat.generateText({ prompt: "Hello." })).text
})
Effect.runPromise(Effect.provide(program, ${isCompacted ? "CompactedModel.withCompaction(plain)" : "plain"})).then(console.log)
`

const bundle = async (/** @type {boolean} */ isCompacted) => {
  const { metafile, outputFiles } = await build({
    stdin: { contents: app(isCompacted), resolveDir: root, loader: "ts" },
    absWorkingDir: root,
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    write: false,
    metafile: true,
    plugins: [{
      name: "own-sources",
      setup(bundler) {
        bundler.onResolve({ filter: /^effect-compaction\// }, ({ path }) => ({
          path: `${root}src/${path.slice("effect-compaction/".length)}.ts`,
          sideEffects: false
        }))
        bundler.onResolve({ filter: /^\.{1,2}\/.*\.ts$/ }, ({ importer, path }) => ({
          path: fileURLToPath(new URL(path, `file://${importer}`)),
          sideEffects: false
        }))
        bundler.onLoad({ filter: /src\/.*\.ts$/ }, ({ path }) => ({
          contents: annotate(transformSync(readFileSync(path, "utf8"), { loader: "ts", target: "es2022" }).code),
          loader: "js"
        }))
      }
    }]
  })
  const bytes = outputFiles[0]?.contents ?? new Uint8Array()
  const inputs = Object.values(metafile.outputs).flatMap(({ inputs }) => Object.entries(inputs))
  return {
    minified: bytes.length,
    gzip: gzipSync(bytes).length,
    modules: inputs.filter(([, { bytesInOutput }]) => bytesInOutput > 0)
      .map(([path, { bytesInOutput }]) => ({ path: relative(root, `${root}${path}`), bytes: bytesInOutput }))
      .sort((a, b) => b.bytes - a.bytes)
  }
}

const [without, compacted] = [await bundle(false), await bundle(true)]
const modules = compacted.modules.filter(({ path }) => path.startsWith("src/"))

if (process.argv.includes("--json")) {
  console.log(JSON.stringify({ without: without.minified, with: compacted.minified, modules }))
} else {
  const kilobytes = (/** @type {number} */ bytes) => `${(bytes / 1024).toFixed(0)} kB`
  const line = (/** @type {string} */ name, /** @type {number} */ minified, /** @type {number} */ gzip) =>
    console.log(`${name.padEnd(8)} ${kilobytes(minified)} minified, ${kilobytes(gzip)} gzip`)
  line("without", without.minified, without.gzip)
  line("with", compacted.minified, compacted.gzip)
  line("adds", compacted.minified - without.minified, compacted.gzip - without.gzip)
  if (process.argv.includes("--modules")) for (const { bytes, path } of modules) console.log(String(bytes).padStart(6), path)
}
