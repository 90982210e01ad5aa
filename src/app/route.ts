import * as Model from "effect/ai/Model"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Budget from "../Budget.ts"

/** Whose model is decorated, where a layer names it. */
export interface Names {
  readonly provider: string | undefined
  readonly model: string | undefined
}

/** The window and the longest answer of a model, in tokens; `undefined` where nothing is known of it. */
interface WindowOf {
  (provider: string, model: string): { readonly window: number; readonly maxOutput: number } | undefined
}

export const byTable: WindowOf = (_, model) => Budget.modelOf(model)

export const namesInContext = Effect.gen(function*() {
  return {
    provider: Option.getOrUndefined(yield* Effect.serviceOption(Model.ProviderName)),
    model: Option.getOrUndefined(yield* Effect.serviceOption(Model.ModelName))
  }
})

/** The route of a call and what it says about the model. */
export const of = ({ model, provider = "" }: Names, windowOf: WindowOf) => {
  if (model === undefined) return {}
  const known = windowOf(provider, model)
  const route = `${provider}/${model}`
  return known === undefined ? { route } : { route, window: known.window, maxOutput: known.maxOutput }
}
