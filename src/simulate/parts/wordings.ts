import type * as Retention from "../Retention.ts"
import * as Random from "./random.ts"

export const nouns = ["kestrel", "harbor", "lantern", "meadow", "quartz", "ribbon", "saddle", "timber"] as const
const verbs = ["rename", "cache", "retry", "flatten", "split", "stream", "pin", "sort"] as const

/**
 * How a fact may be put, with its subject and its value. None of them says "must", "never", "decided" or any other word that
 * a rule of this library goes by: a summary or a policy that keeps such words would otherwise be measured by them.
 */
const wordings: { readonly [K in Retention.Kind]: readonly [Wording, ...ReadonlyArray<Wording>] } = {
  constraint: [
    (subject, value) => `${subject} runs under contract ${value}.`,
    (subject, value) => `Contract ${value} covers ${subject}.`,
    (subject, value) => `For ${subject} legal signed off contract ${value}.`,
    (subject, value) => `The owner of ${subject} holds contract ${value}.`
  ],
  path: [
    (subject, value) => `${subject} lives at src/${value}/${subject}.ts.`,
    (subject, value) => `The source of ${subject} sits at src/${value}/${subject}.ts.`,
    (subject, value) => `src/${value}/${subject}.ts holds ${subject}.`,
    (subject, value) => `Look for ${subject} at src/${value}/${subject}.ts.`
  ],
  number: [
    (subject, value) => `${subject} takes ${value} bytes.`,
    (subject, value) => `The quota of ${subject} stands at ${value} bytes.`,
    (subject, value) => `We measured ${value} bytes for ${subject}.`,
    (subject, value) => `${value} bytes is what ${subject} gets.`
  ],
  decision: [
    (subject, value) => `The plan for ${subject} reads ${value}.`,
    (subject, value) => `${value} won the vote on ${subject}.`,
    (subject, value) => `On ${subject} the group settled for ${value}.`,
    (subject, value) => `${subject} got the label ${value}.`
  ]
}

type Wording = (subject: string, value: string) => string

const value = (kind: Retention.Kind, random: Random.Random): string => {
  if (kind === "decision") return `${Random.pick(random, verbs)}-${Random.whole(random, 1_000, 10_000)}`
  if (kind === "path") return `${Random.pick(random, nouns)}${Random.whole(random, 1_000, 10_000)}`
  return String(Random.whole(random, 1_000_000, 10_000_000))
}

/** A statement about a subject, with a value that occurs nowhere else, and what every telling of it must hold. */
export const statement = (
  kind: Retention.Kind,
  random: Random.Random,
  subject: string
): Pick<Retention.Probe, "text" | "words"> => {
  const chosen = value(kind, random)
  return {
    text: Random.pick(random, wordings[kind])(subject, chosen),
    words: kind === "path" ? [`src/${chosen}/${subject}.ts`] : [subject, chosen]
  }
}
