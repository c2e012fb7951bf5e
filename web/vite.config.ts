import { defineConfig } from "vite";

/** Names that stay: the server embeds these very files, and browsers ask again by ETag. */
export default defineConfig({
  build: {
    outDir: "../crates/server/web-dist",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: false,
    // What others wrote goes with their licences.
    license: { fileName: "assets/licenses.md" },
    target: "es2022",
    rollupOptions: {
      output: {
        entryFileNames: "assets/page.js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: ({ names }) => (names[0] === "index.css" ? "assets/page.css" : "assets/[name][extname]"),
      },
    },
  },
});
