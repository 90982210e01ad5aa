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
    // Property tests on a busy machine take many seconds; nothing waits for a clock.
    testTimeout: 120_000,
    // On two cores the default is one worker.
    maxWorkers: "100%",
    coverage: {
      provider: "v8",
      reporter: ["text-summary"],
      include: ["src/**/*.ts"],
      // The entry only starts the program: the package check runs it.
      exclude: ["src/cli/main.ts"]
    }
  }
})
