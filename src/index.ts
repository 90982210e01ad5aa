/**
 * Keeps a conversation inside a model's window. Every module is a namespace here and a sub-path of the package.
 *
 * @since 0.1.0
 */
export * as Budget from "./Budget.ts"
export * as CompactionEvent from "./CompactionEvent.ts"
export * as ContextManager from "./ContextManager.ts"
export * as Decision from "./Decision.ts"
export * as Estimator from "./Estimator.ts"
export * as Gate from "./Gate.ts"
export * as Guard from "./Guard.ts"
export * as Ladder from "./Ladder.ts"
export * as Marks from "./Marks.ts"
export * as Media from "./Media.ts"
export * as Pairing from "./Pairing.ts"
export * as Reasoning from "./Reasoning.ts"
export * as Rung from "./Rung.ts"
export * as Settings from "./Settings.ts"
export * as SpillStore from "./SpillStore.ts"
export * as Stage from "./Stage.ts"
export * as TokenMeter from "./TokenMeter.ts"
export * as ToolResult from "./ToolResult.ts"
export * as Transcript from "./Transcript.ts"
export * as View from "./View.ts"
export * as Wire from "./Wire.ts"
