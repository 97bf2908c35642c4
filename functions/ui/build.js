/**
 * Builds the scripts in `dist/` from the modules and style sheets in `embed/`.
 *
 * Usage: `npm ci && node build.js`
 */

import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, transform } from 'esbuild'
import { minify } from 'terser'

const EMBED = fileURLToPath(new URL('embed', import.meta.url))
const DIST = new URL('dist/', import.meta.url)

/** Imports style sheets as their minified text. @type {import('esbuild').Plugin} */
const styles = {
  name: 'styles',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, 'utf8'), { loader: 'css', minify: true })
      return { contents: code.trim().replace(/(--[-\w]+:|,) /g, '$1').replaceAll(' * ', '*'), loader: 'text' }
    }),
}

/**
 * Resolves the names in `scripts` to scripts that are already bundled. All other imports stay external.
 * @param {Record<string, string>} scripts @returns {import('esbuild').Plugin}
 */
const made = (scripts) => ({
  name: 'made',
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /./ }, ({ path }) => (path in scripts ? { path, namespace: 'made' } : { path, external: true }))
    onLoad({ filter: /./, namespace: 'made' }, ({ path }) => ({ contents: scripts[path] }))
  },
})

/** Properties that the build renames, which saves 150 bytes per script. The reader and the writer must not read properties with these names from responses, browser objects or the host page. */
const OWN = 'action addReply again announce api attempt back bar become box brings cancel chips choose comment composer content correct editors element empty ended expand explain fallible fields fieldsOfGuests focusOn folded foot fresh giveUp guestKey hide inputs insert insertInto isAddress isEdit isLoose isOver isTyping keep keepGuestKey kept later leave left line load methods missing more notice opener path pictures place problem purpose remember renew reveal revealAddressed root say section show showEmpty showMarks showMore showTheme showTotal signIn since slot sortBy stop suggest tag take thread toast token typed views watch welcome who write'

/** @param {string} entry @param {import('esbuild').BuildOptions} options */
const bundle = (entry, options) =>
  build({ absWorkingDir: EMBED, entryPoints: [entry], bundle: true, format: 'esm', charset: 'utf8', metafile: true, write: false, outdir: '.', ...options })

/** @param {{ metafile?: import('esbuild').Metafile }[]} bundles */
async function checkAllUsed(bundles) {
  const used = new Set(bundles.flatMap(({ metafile }) => Object.keys(metafile?.inputs ?? {})))
  const files = (await readdir(EMBED, { recursive: true })).map((path) => path.replaceAll('\\', '/'))
  const unused = files.filter((path) => /\/.*\.(css|js)$/.test(path) && !used.has(path))
  if (unused.length) throw Error(`No script contains ${unused.join(', ')}.`)
}

const hashOf = (/** @type {string} */ text) => createHash('sha256').update(text).digest('hex').slice(0, 16)

/** Minifies a script. esbuild's names compress better than terser's, and `let` compresses better than `const`. @param {string} script */
async function small(script) {
  const { code: named } = await transform(script.replaceAll('const ', 'let '), { charset: 'utf8', minifyIdentifiers: true })
  const { code } = await minify(named, { module: true, ecma: 2020, compress: { passes: 3, unsafe: true, unsafe_arrows: true, pure_getters: true, hoist_funs: true }, format: { quote_style: 1 } })
  return `${code}\n`
}

// esbuild splits the widget into the reader, the writer (which the reader imports when a visitor begins to write), and their shared code.
const mangleProps = RegExp(`^(${OWN.replaceAll(' ', '|')})$`)
const split = await bundle('reader/element.js', { splitting: true, plugins: [styles], mangleProps, mangleCache: {} })
const [reader, writer, shared] = split.outputFiles.map(({ path, text }) => ({ name: `./${basename(path)}`, text }))
const moderation = await bundle('moderation/element.js', { plugins: [styles] })
await checkAllUsed([split, moderation])

// A separate shared script would cost another request, so the reader contains the shared code and passes it to the
// writer, which is wrapped in a function. The reader may be from another version, so the writer checks `fit`, a hash of
// the passed names and of the renamed properties.
const [statement, imported] = /^import \{([^}]*)\} from .*;\n/.exec(writer.text) ?? ['', '']
const names = imported.split(',').map((name) => name.trim().split(' as '))
const fit = hashOf(JSON.stringify([names.map(([name]) => name), split.mangleCache])).slice(0, 4)
const body = writer.text.replace(statement, '').replace(/^export (?=\{[^}]*\};\s*$)/m, 'return ')
const part = await small(`
  export default (fit, [${names.map(([name, local = name]) => local)}]) => {
    if (fit !== '${fit}') throw Error('The page has another version.')
    ${body}
  }`)

const partName = `writer.${hashOf(part)}.js`
const loading = `import('./embed/${partName}').then((part) => part.default('${fit}', [${names.map(([name]) => `given.${name}`)}]))`
const whole = `import * as given from '${shared.name}'\n${reader.text.replace(`import("${writer.name}")`, loading)}`
const embed = await bundle('reader', { plugins: [made({ reader: whole, [shared.name]: shared.text })] })

await mkdir(DIST, { recursive: true })
const scripts = {
  'embed.js': await small(embed.outputFiles[0].text),
  'writer.js': part,
  'writer.name': partName,
  'moderation.js': await small(moderation.outputFiles[0].text),
}
for (const [name, text] of Object.entries(scripts)) await writeFile(new URL(name, DIST), text)
