// SPDX-License-Identifier: Apache-2.0
// Lints the report's script as the page has it: the fragments of report/html/templates/ one after the other in one
// function. Findings name the fragment and the line in it. Run from the root: node build/javascript/lint.mjs
import { readFileSync } from "node:fs";
import js from "@eslint/js";
import { ESLint } from "eslint";

const FOLDER = "report/html/templates/";
const BROWSER = ["document", "window", "matchMedia", "requestAnimationFrame", "getComputedStyle", "setTimeout"];

const names = [...readFileSync("report/html/page.py", "utf8").match(/^_SCRIPTS = \(([^)]*)\)/m)[1].matchAll(/"(.+?)"/g)];
const lines = names.flatMap(([, name]) => {
  const text = readFileSync(FOLDER + name, "utf8").replace(/\n$/, "");
  return text.split("\n").map((text, at) => ({ text, place: `${FOLDER}${name}:${at + 1}` }));
});
const page = ['(() => {"use strict";', ...lines.map(({ text }) => text), "})();", ""].join("\n");
const eslint = new ESLint({
  overrideConfigFile: true,
  overrideConfig: [
    js.configs.recommended,
    {
      languageOptions: { sourceType: "script", globals: Object.fromEntries(BROWSER.map((name) => [name, "readonly"])) },
      linterOptions: { reportUnusedDisableDirectives: "error" },
      rules: {
        "array-callback-return": "error",
        "eqeqeq": "error",
        "no-constructor-return": "error",
        "no-eval": "error",
        "no-implied-eval": "error",
        "no-loop-func": "error",
        "no-promise-executor-return": "error",
        "no-return-assign": "error",
        "no-self-compare": "error",
        "no-shadow": "error",
        "no-template-curly-in-string": "error",
        "no-unmodified-loop-condition": "error",
        "no-unused-expressions": "error",
        "no-useless-concat": "error",
        "no-useless-return": "error",
        "no-var": "error",
        "prefer-const": "error",
      },
    },
  ],
});
const [{ messages }] = await eslint.lintText(page);
for (const { line, column, message, ruleId } of messages) {
  // the first line of the page is the beginning of the function
  console.log(`${lines[line - 2]?.place ?? "page"}:${column}: ${message} [${ruleId}]`);
}
process.exitCode = messages.length ? 1 : 0;
