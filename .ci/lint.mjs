// Rules for src that oxlint does not have.

/** @typedef {Parameters<import("oxlint/plugins-dev").RuleTester["run"]>[1]} Rule */

/** @type {Rule} */
const noThrow = {
  create: (context) => ({
    ThrowStatement: (node) => context.report({ node, message: "No throw in src: fail with a typed error." })
  })
}

/** @type {Rule} */
const asWithReason = {
  create: (context) => ({
    TSAsExpression: (node) => {
      const type = context.sourceCode.getText(node.typeAnnotation)
      if (type === "const") return
      // The reason stands on the line of the `as`, or above it within (or directly above) the statement that holds it.
      let statement = node.parent
      while (statement.parent && !/(Statement|Declaration|PropertyDefinition)$/.test(statement.type)) statement = statement.parent
      const first = statement.loc.start.line - 1
      const last = node.loc.end.line
      const reason = context.sourceCode.getAllComments().some((comment) =>
        !(comment.type === "Block" && comment.value.startsWith("*")) &&
        !comment.value.trim().startsWith("oxlint-") &&
        comment.loc.end.line >= first && comment.loc.start.line <= last
      )
      if (!reason) context.report({ node, message: `Say in a comment why \`as ${type}\` is right, or do without it.` })
    }
  })
}

export default { meta: { name: "local" }, rules: { "no-throw": noThrow, "as-with-reason": asWithReason } }
