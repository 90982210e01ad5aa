/** Breaks every reminder tag in a text that is going to stand in an envelope, so that it cannot end or open one. */
const neutralise = (text: string): string =>
  text.replace(/<(\/?)system-reminder/gi, (_, slash: string) => `<${slash} system-reminder`)

/** A text in the envelope that tells the model that no person wrote it. */
export const envelope = (source: string, text: string): string =>
  `<system-reminder source="${source}">\n${neutralise(text)}\n</system-reminder>`
