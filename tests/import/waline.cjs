// Starts the package @waline/vercel in the folder given by the first argument. Waline itself reads the port from the
// second argument. Works like the package's own vanilla.js, but only on the loopback interface.

const { join } = require("node:path");

const root = process.argv[1];
const Application = require(require.resolve("thinkjs", { paths: [root] }));
new Application({ ROOT_PATH: root, APP_PATH: join(root, "src"), proxy: true, env: "production" }).run();
think.config("host", "127.0.0.1");
