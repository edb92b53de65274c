// Serve a scripted conversation with aimock: node aimock.mjs FOLDER_OF_ITS_PACKAGE TURNS_AS_JSON; prints its address.
import { pathToFileURL } from "node:url";

const [folder, turns] = process.argv.slice(2);
const { LLMock } = await import(pathToFileURL(`${folder}/dist/index.js`).href);
const mock = new LLMock({ port: 0, chunkSize: 4 });
JSON.parse(turns).forEach((response, turnIndex) => mock.on({ userMessage: "installed", turnIndex }, response));
await mock.start();
console.log(mock.url);
