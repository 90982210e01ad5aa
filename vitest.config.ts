import "./test/node20.ts"
import { fileURLToPath } from "node:url"
import { defineConfig } from "vitest/config"

const source = (path: string) => fileURLToPath(new URL(path, import.meta.url))

export default defineConfig({
  resolve: {
    alias: [
      { find: /^effect-compaction$/, replacement: source("./src/index.ts") },
      { find: /^effect-compaction\/(.*)$/, replacement: source("./src/$1.ts") }
    ]
  },
  test: {
    include: ["test/**/*.test.ts"],
    coverage: { provider: "v8", include: ["src/**/*.ts"], exclude: ["src/cli/main.ts"] }
  }
})
