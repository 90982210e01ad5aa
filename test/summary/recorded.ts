import * as Prompt from "effect/ai/Prompt"
import { answers, assistant, result, system, user } from "../core/conversation.ts"

/**
 * A compaction in the shape of recorded ones: what was summarised, the summary, and what in it is false, labelled by hand. The
 * sessions are made up; how their summaries put things (other case, joined words, whole paths, rounded numbers) is what real
 * ones do.
 */
export interface Recorded {
  readonly name: string
  readonly span: ReadonlyArray<Prompt.Message>
  readonly summary: string
  readonly invented: ReadonlyArray<string>
}

let calls = 0

/** A call with its arguments, and what came of it. */
const did = (name: string, params: unknown, output: string): ReadonlyArray<Prompt.Message> => {
  const id = `call_${++calls}`
  return [
    Prompt.makeMessage("assistant", {
      content: [Prompt.makePart("tool-call", { id, name, params, providerExecuted: false })]
    }),
    answers(result(id, output))
  ]
}

const thought = (text: string): Prompt.Message =>
  Prompt.makeMessage("assistant", { content: [Prompt.makePart("reasoning", { text })] })

/** A file as a tool shows it, line by line. */
const listing = (...lines: ReadonlyArray<string>): string =>
  lines.map((line, at) => `${String(at + 1).padStart(6)}→${line}`).join("\n")

const retry: Recorded = {
  name: "a retry that never ends",
  span: [
    system("You are a coding agent. Run the tests before you say that something works."),
    user(
      "Uploads hang for ever when S3 answers 503. Please fix it. Do not change the public API, and never log the secret key."
    ),
    ...did(
      "Bash",
      { command: "cd /home/ann/upload-service && git log --oneline -3" },
      [
        "9f3c2ab Add multipart uploads",
        "41d07be Bump aws-sdk",
        "c0ffee1 Initial import"
      ].join("\n")
    ),
    ...did(
      "Read",
      { file_path: "/home/ann/upload-service/src/transport/retry.ts" },
      listing(
        "import { sleep } from \"../clock.ts\"",
        "",
        "export const MAX_ATTEMPTS = Infinity",
        "export async function withRetry<A>(run: () => Promise<A>, isRetryable: (error: unknown) => boolean): Promise<A> {",
        "  for (let attempt = 1;; attempt++) {",
        "    try { return await run() } catch (error) {",
        "      if (!isRetryable(error)) throw error",
        "      await sleep(250 * 2 ** attempt)",
        "    }",
        "  }",
        "}"
      )
    ),
    thought("MAX_ATTEMPTS is Infinity, so a 503 retries for ever. backoffDelay should be capped at 8000 ms."),
    assistant(
      "The cause is `MAX_ATTEMPTS = Infinity` in retry.ts. I'll cap it at 5 attempts and cap the delay, because the client gives up after 30 seconds anyway."
    ),
    ...did(
      "Edit",
      {
        file_path: "/home/ann/upload-service/src/transport/retry.ts",
        old_string: "export const MAX_ATTEMPTS = Infinity",
        new_string:
          "export const MAX_ATTEMPTS = 5\nconst backoffDelay = (attempt: number) => Math.min(8000, 250 * 2 ** attempt)"
      },
      "The file has been updated."
    ),
    ...did(
      "Bash",
      { command: "npx vitest run test/retry.test.ts" },
      [
        "FAIL test/retry.test.ts > withRetry > gives up after MAX_ATTEMPTS",
        "AssertionError: expected 6 to equal 5",
        "Tests  1 failed | 341 passed (342)",
        "Duration 12.47s"
      ].join("\n")
    ),
    ...did(
      "Edit",
      {
        file_path: "/home/ann/upload-service/src/transport/retry.ts",
        old_string: "attempt++",
        new_string: "attempt++ /* \"attempt\" counts from 1 */"
      },
      "The file has been updated."
    ),
    ...did("Bash", { command: "npx vitest run" }, "Tests  342 passed (342)\nDuration 61.80s"),
    user("Good. Now do the same for the downloads in src/transport/range.ts, where fetchRange has its own loop."),
    ...did(
      "Grep",
      { pattern: "fetchRange", path: "src" },
      [
        "src/transport/range.ts:118:export const fetchRange = async (url: URL, from: number, to: number) => {",
        "src/cli/download.ts:27:  const part = await fetchRange(url, offset, offset + CHUNK_BYTES - 1)"
      ].join("\n")
    )
  ],
  summary: `## Request
- Uploads hang for ever when S3 answers 503: fix it. "Do not change the public API, and never log the secret key."
- Then: the same for downloads, \`fetchRange()\` in src/transport/range.ts.
## Constraints
- The public API must not change.
- Never log the secret key.
## Decisions
- \`max_attempts\` was Infinity; capped at 5, and \`backoffDelay\` caps the delay at 8,000 ms, because the client gives up after 30 seconds.
## Files and code
- /home/ann/upload-service/src/transport/retry.ts: \`withRetry\`, \`isRetryable\`, \`MAX_ATTEMPTS\`, \`backoffDelay\`
- range.ts line 118: \`fetchRange\`, called by src/cli/download.ts:27 with \`CHUNK_BYTES\`
## Errors
- test/retry.test.ts: "expected 6 to equal 5", fixed (attempt counts from 1)
## State
- All 342 tests pass (62 s); commits so far end at 9f3c2ab.
## Open
- none
## Next
- Give the upload/download loops one retry, in range.ts.`,
  invented: []
}

const migration: Recorded = {
  name: "a migration of a table",
  span: [
    user("Move the sessions out of Redis into Postgres. Keep the old ids. We should not lose a logged-in user."),
    ...did(
      "Glob",
      { pattern: "app/models/*.py" },
      "app/models/user.py\napp/models/session_store.py\napp/models/audit_log.py"
    ),
    ...did(
      "Read",
      { path: "app/models/session_store.py" },
      listing(
        "class SessionStore:",
        "    def __init__(self, client: \"redis.Redis\", ttl_seconds: int = 1209600):",
        "        self._client = client",
        "    def load_session(self, session_id: str) -> dict | None:",
        "        raw = self._client.get(f\"sess:{session_id}\")",
        "        return json.loads(raw) if raw else None"
      )
    ),
    assistant(
      "I decided to keep SessionStore's interface and to add a PostgresSessionStore beside it. Both are written for two weeks (1209600 seconds), then Redis goes."
    ),
    ...did(
      "write_file",
      {
        path: "migrations/0042_sessions.sql",
        content:
          "CREATE TABLE sessions (\n  id text PRIMARY KEY,\n  payload jsonb NOT NULL,\n  expires_at timestamptz NOT NULL\n);\nCREATE INDEX sessions_expires_at_idx ON sessions (expires_at);"
      },
      "wrote 187 bytes"
    ),
    ...did(
      "write_file",
      {
        path: "app/models/postgres_session_store.py",
        content:
          "class PostgresSessionStore(SessionStore):\n    def load_session(self, session_id):\n        row = self._pool.fetch_one(SELECT_SESSION, session_id)\n        return row[\"payload\"] if row else None\n"
      },
      "wrote 612 bytes"
    ),
    ...did(
      "shell",
      { command: ["pytest", "-q", "tests/test_session_store.py"] },
      [
        "E       psycopg.errors.UndefinedTable: relation \"sessions\" does not exist",
        "1 failed, 28 passed in 3.21s"
      ].join("\n")
    ),
    ...did(
      "shell",
      { command: ["alembic", "upgrade", "head"] },
      "INFO  Running upgrade 3b1f77d2a9c0 -> 8e4c55aa10fe, sessions"
    ),
    ...did("shell", { command: ["pytest", "-q"] }, "415 passed, 3 skipped in 48.09s"),
    user("Also count how many sessions there are before we switch."),
    ...did("shell", { command: ["redis-cli", "--scan", "--pattern", "sess:*"] }, "sess:a81f\nsess:b77c\n(total 128406)")
  ],
  summary: `**Request**
- Move the sessions out of Redis into PostgreSQL/Postgres, keep the old ids, do not lose a logged-in user; count the sessions before the switch.

**Decisions**
- Keep the interface of \`SessionStore\`, add \`PostgresSessionStore\`; write both for 1,209,600 s (two weeks), then drop Redis.

**Files and code**
- migrations/0042_sessions.sql: table \`sessions\` (id, payload, expires_at), index \`sessions_expires_at_idx\`
- app/models/postgres_session_store.py: \`load_session\` uses \`SELECT_SESSION\` and \`_pool.fetch_one\`
- app/models/session_store.py (unchanged)

**Errors**
- \`psycopg.errors.UndefinedTable\`: relation "sessions" does not exist; fixed by \`alembic upgrade head\` (8e4c55aa10fe)

**State**
- 415 tests pass, 3 skipped. Redis holds 128,406 sessions (about 128k) under \`sess:*\`.

**Next**
- Backfill the table from Redis.`,
  invented: ["PostgreSQL/Postgres"]
}

const flaky: Recorded = {
  name: "a flaky test on the build machine",
  span: [
    user("CI is red on main about once in five runs. Find out why. Don't just add a retry to the job."),
    ...did(
      "bash",
      { command: "gh run view 18834412907 --log-failed | tail -40" },
      [
        "scheduler_test.go:211: TestDrainQueue: queue not empty after 2s: 3 jobs left",
        "--- FAIL: TestDrainQueue (2.03s)",
        "panic: test timed out after 10m0s",
        "exit status 2"
      ].join("\n")
    ),
    ...did(
      "bash",
      { command: "cat internal/scheduler/drain.go" },
      [
        "package scheduler",
        "// DrainQueue waits until every worker is idle.",
        "func (s *Scheduler) DrainQueue(ctx context.Context) error {",
        "\tfor s.pending.Load() > 0 { time.Sleep(s.pollInterval) }",
        "\treturn s.flushMetrics(ctx)",
        "}"
      ].join("\n")
    ),
    thought(
      "pending is decremented before the worker calls markIdle, so DrainQueue may return early. The log shows job 7f00c1d9 still running."
    ),
    assistant(
      "`pending` is decremented in runWorker before markIdle is called. Let me look at internal/scheduler/worker.go."
    ),
    ...did(
      "bash",
      { command: "sed -n 80,96p internal/scheduler/worker.go" },
      [
        "func (s *Scheduler) runWorker(id int) {",
        "\tdefer s.wg.Done()",
        "\tfor job := range s.jobs {",
        "\t\ts.execute(job)",
        "\t\ts.pending.Add(-1)",
        "\t\ts.markIdle(id)",
        "\t}",
        "}"
      ].join("\n")
    ),
    ...did("apply_patch", {
      input:
        "*** Begin Patch\n*** Update File: internal/scheduler/worker.go\n@@\n-\t\ts.pending.Add(-1)\n-\t\ts.markIdle(id)\n+\t\ts.markIdle(id)\n+\t\ts.pending.Add(-1)\n*** End Patch"
    }, "Success. Updated internal/scheduler/worker.go"),
    ...did(
      "bash",
      { command: "go test -race -count=500 -run TestDrainQueue ./internal/scheduler" },
      "ok  \texample.com/sched/internal/scheduler\t184.220s"
    ),
    ...did(
      "bash",
      { command: "git commit -am 'Mark a worker idle before its job is counted off' && git rev-parse --short HEAD" },
      "[fix-drain e5d81f0] Mark a worker idle before its job is counted off\n 1 file changed, 2 insertions(+), 2 deletions(-)\ne5d81f0"
    )
  ],
  summary: `## Request
CI is red about once in five runs; find out why. Don't just add a retry to the job.
## Decisions
- The cause is the order in \`Scheduler.runWorker\`: \`pending\` goes down before \`markIdle\`, so \`DrainQueue\` returns early.
## Files and code
- internal/scheduler/worker.go: \`markIdle(id)\` is now called before \`pending.Add(-1)\`
- internal/scheduler/drain.go: \`DrainQueue\`, \`pollInterval\`, \`flushMetrics\` (read, not changed)
## Errors
- Run 18834412907: scheduler_test.go:211 \`TestDrainQueue\`: "queue not empty after 2s", 3 jobs left (7f00c1d9 among them)
## State
- 500 runs with -race pass in 184.2 s. Committed as e5d81f0 on fix-drain (2 insertions, 2 deletions).
## Open
- The fix was never tried on the CI machine.
## Next
- Open the pull request.`,
  invented: []
}

const styles: Recorded = {
  name: "a page whose theme flickers",
  span: [
    system("Repository rules: use pnpm. Never edit files under generated/."),
    user(
      "The dashboard flashes white before the dark theme is applied. Make it stop, must work without JavaScript too if possible."
    ),
    ...did(
      "search",
      { query: "data-theme" },
      [
        "packages/web/src/layout/ThemeProvider.tsx:34: document.documentElement.dataset.theme = storedTheme",
        "packages/web/public/index.html:9: <html lang=\"en\" data-theme=\"light\">",
        "packages/web/src/styles/tokens.css:3: :root[data-theme=\"dark\"] { --surface-base: #10131a }"
      ].join("\n")
    ),
    ...did(
      "open",
      { path: "packages/web/src/layout/ThemeProvider.tsx" },
      [
        "export function ThemeProvider({ children }: Props) {",
        "  const [theme, setTheme] = useState(\"light\")",
        "  useEffect(() => { const storedTheme = localStorage.getItem(\"ui.theme\") ?? \"light\"; setTheme(storedTheme) }, [])",
        "  return <ThemeContext.Provider value={theme}>{children}</ThemeContext.Provider>",
        "}"
      ].join("\n")
    ),
    assistant(
      "useEffect runs after the first paint, so the flash is certain. Instead a blocking script in index.html reads ui.theme, and without JavaScript prefers-color-scheme decides."
    ),
    ...did("replace", {
      path: "packages/web/public/index.html",
      old: "<html lang=\"en\" data-theme=\"light\">",
      new:
        "<html lang=\"en\">\n<script>document.documentElement.dataset.theme = localStorage.getItem('ui.theme') ?? ''</script>"
    }, "ok"),
    ...did("replace", {
      path: "packages/web/src/styles/tokens.css",
      old: ":root[data-theme=\"dark\"]",
      new:
        "@media (prefers-color-scheme: dark) { :root:not([data-theme=\"light\"]) { --surface-base: #10131a } }\n:root[data-theme=\"dark\"]"
    }, "ok"),
    ...did(
      "run",
      { command: "pnpm --filter web test:visual" },
      "27 snapshots passed, 1 obsolete\ncumulative layout shift 0.0184 (was 0.2210)\nfirst paint 1342 ms"
    )
  ],
  summary: `## Request
- The dashboard flashes white before the dark theme; it must stop, and work without JavaScript if possible.
## Constraints
- Use pnpm.
- Files under generated/ must never be edited.
## Decisions
- \`useEffect\` in \`ThemeProvider\` runs after first paint, so a blocking script in packages/web/public/index.html reads \`ui.theme\`; without JavaScript \`prefers-color-scheme\` decides.
## Files and code
- packages/web/public/index.html and packages/web/src/styles/tokens.css (\`--surface-base\`, \`data-theme\`)
- packages/web/src/layout/ThemeProvider.tsx: \`storedTheme\`, \`setTheme\`, \`ThemeContext\` (not changed yet)
## State
- Snapshots/tests pass; layout shift is 0.018 (was 0.221), first paint 1,342 ms.
## Next
- Remove the state from \`themeprovider\`.`,
  invented: []
}

export const all: ReadonlyArray<Recorded> = [retry, migration, flaky, styles]
