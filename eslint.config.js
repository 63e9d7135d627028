import js from "@eslint/js";
import globals from "globals";

export default [
  { ignores: ["**/*.d.ts", ".venv/", "site/", "dist/", "results/"] },
  js.configs.recommended,
  {
    languageOptions: { globals: globals.browser },
    rules: {
      eqeqeq: "error",
      "no-unused-vars": "error",
      "no-undef": "error",
      "prefer-const": "error",
    },
  },
  { files: ["tests/**/*.js"], languageOptions: { globals: globals.node } },
];
