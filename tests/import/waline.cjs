// Starts the package @waline/vercel in the folder given by the first argument, on the port given by the second, which Waline
// reads itself. It works like the package's own vanilla.js, but only on the loopback interface.

const { join } = require("node:path");

const root = process.argv[1];
const Application = require(require.resolve("thinkjs", { paths: [root] }));
new Application({ ROOT_PATH: root, APP_PATH: join(root, "src"), proxy: true, env: "production" }).run();
think.config("host", "127.0.0.1");
