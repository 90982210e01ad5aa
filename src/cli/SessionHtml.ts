/**
 * What `session html` does: the page of a session as its log tells it.
 *
 * @since 0.1.0
 */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Failed from "./Failed.ts"
import * as OutputFile from "./OutputFile.ts"
import * as StoryPage from "./report/StoryPage.ts"
import * as SessionSource from "./SessionSource.ts"
import * as SessionStory from "./SessionStory.ts"
import * as Shown from "./Shown.ts"
import * as Story from "./Story.ts"

interface Values extends SessionSource.Source {
  readonly json: boolean
  readonly target: Option.Option<string>
}

/** Writes the page of a session, or its data; fails with the exit code. */
export const run = ({ json, target, ...given }: Values) =>
  Effect.gen(function*() {
    const contents = yield* SessionSource.read(given)
    const story = yield* SessionStory.read(given.session, contents)
    const page = StoryPage.render([story])
    if (Option.isSome(target) && target.value !== "-") yield* OutputFile.write(target.value, page)
    else if (!json) yield* Console.log(page)
    if (json) {
      yield* Console.log(Shown.json({ path: contents.path, moments: story.moments, ...Story.dataOf(story) }))
    }
    return 0
  }).pipe(Failed.codeOf, Effect.flatMap(Failed.end))
