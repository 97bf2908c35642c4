// Starts the package @waline/vercel in the folder that is the first argument, on the port that is the second. It works like
// the package's own vanilla.js, but only on the loopback interface. Waline takes its port from the arguments.

const { join } = require("node:path");

const root = process.argv[1];
const Application = require(require.resolve("thinkjs", { paths: [root] }));
new Application({ ROOT_PATH: root, APP_PATH: join(root, "src"), proxy: true, env: "production" }).run();
think.config("host", "127.0.0.1");
