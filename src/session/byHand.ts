/** What a person asks of a session, and what came of it. */

/**
 * What a person asks for when compacting by hand: what the summary should keep an eye on, and the id of the command, which
 * comes back in the report.
 *
 * @category models
 * @since 0.1.0
 */
export interface ManualOptions {
  readonly focus?: string
  readonly commandId?: string
}

/**
 * What compacting by hand did.
 *
 * **Details**
 *
 * - `entries`: how many entries left the view; `shadowed`: what they cost there, in tokens of price. `freed`: by how much the
 *   view got smaller, in tokens of price, with what came into it in their place, such as a checkpoint.
 * - `generation`: the one it made. `checkpoint`: the entry of the checkpoint, `null` for none.
 *
 * @category models
 * @since 0.1.0
 */
export interface CompactionReport {
  readonly entries: number
  readonly shadowed: number
  readonly freed: number
  readonly generation: number
  readonly checkpoint: number | null
  readonly commandId: string | null
}
