import type * as CompactionEvent from "../CompactionEvent.ts"
import type * as Decision from "../Decision.ts"
import type * as Settings from "../Settings.ts"
import * as SpillStore from "../SpillStore.ts"
import * as Text from "../text/text.ts"
import type * as Transcript from "../Transcript.ts"

/** A result that is cut because of its size as it came, and what is told about it. */
export interface Capped {
  readonly decision: Decision.Cap
  readonly event: typeof CompactionEvent.ToolResultCapped.Type
}

/** UTF-8 takes at most three bytes for a UTF-16 code unit. */
const bytesPerUnit = 3

const bytesOf = (entry: Transcript.Entry): number => {
  const { message } = entry
  const part = message.role === "tool" ? message.content[0] : undefined
  return part?.type === "tool-result" ? Text.resultBytes(part) : 0
}

/**
 * The results from `from` on that are larger than `maxToolResultBytes`. What was decided about before stays as it is: so
 * a session that is restored is not cut again.
 */
export const capsOf = (
  settings: Settings.Settings,
  transcript: Transcript.Transcript,
  index: Decision.Index,
  locate: SpillStore.Locate,
  from: number
): ReadonlyArray<Capped> => {
  const cap = settings.maxToolResultBytes
  const capped: Array<Capped> = []
  if (cap === null) return capped
  const { entries } = transcript
  for (let seq = from; seq < entries.length; seq++) {
    const entry = entries[seq]!
    if (entry.kind !== "result" || entry.pinned || entry.length * bytesPerUnit <= cap) continue
    if (settings.exemptTools.includes(entry.tool) || entry.tool === SpillStore.retrieveToolName) continue
    if (index.removed.has(seq) || index.altered.has(seq)) continue
    const bytes = bytesOf(entry)
    if (bytes <= cap) continue
    const locator = locate(entry)
    capped.push({
      decision: {
        _tag: "Cap",
        seq,
        at: entries.length,
        bytes: cap,
        ...(locator === undefined ? undefined : { locator })
      },
      event: { _tag: "ToolResultCapped", seq, tool: entry.tool, bytes, cap }
    })
  }
  return capped
}
