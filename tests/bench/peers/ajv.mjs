// Validates every document below a folder with ajv and js-yaml: node ajv.mjs SCHEMA FOLDER
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRequire } from 'node:module';

// The packages lie where the benchmark installed them, not beside this file.
const require = createRequire(join(process.env.PEERS_DIR, 'x.js'));
const Ajv = require('ajv').default;
const addFormats = require('ajv-formats').default;
const yaml = require('js-yaml');

const [schemaFile, folder] = process.argv.slice(2);
const ajv = new Ajv({ allErrors: true, strict: false });
addFormats(ajv);
const validate = ajv.compile(JSON.parse(readFileSync(schemaFile, 'utf8')));
let documents = 0;
let invalid = 0;
for (const name of readdirSync(folder)) {
  for (const document of yaml.loadAll(readFileSync(join(folder, name), 'utf8'))) {
    documents += 1;
    invalid += validate(document) ? 0 : 1;
  }
}
console.log(`${documents} documents, ${invalid} invalid`);
process.exit(invalid === 0 ? 0 : 1);
