'use strict';
// Shows the OpenAPI document in this page. All text is inserted as text, never as markup.
const api = JSON.parse(document.getElementById('document').textContent);

const follow = node => node && node.$ref
  ? follow(node.$ref.slice(2).split('/').reduce((at, name) => at[name.replace(/~1/g, '/').replace(/~0/g, '~')], api))
  : node || {};

function el(tag, props, ...children) {
  const node = Object.assign(document.createElement(tag), props);
  node.append(...children.flat().filter(child => child !== null && child !== undefined && child !== ''));
  return node;
}

// Code spans are the only markdown that descriptions use.
const inline = text => text.split(/(`[^`]+`)/).map(part =>
  part.startsWith('`') ? el('code', {}, part.slice(1, -1)) : part);
const prose = (text, className) => (text || '').split(/\n\s*\n/).filter(part => part.trim()).map(part =>
  el('p', { className: className || '' }, inline(part.trim())));

function typeOf(schema) {
  if (schema.$ref) {
    const named = follow(schema);
    return named.type === 'object' ? schema.$ref.split('/').pop() : typeOf(named);
  }
  if (schema.oneOf) return schema.oneOf.map(typeOf).join(' or ');
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.join(' | ');
  if (schema.type === 'array') return 'list of ' + typeOf(schema.items || {});
  const type = [].concat(schema.type || 'anything').join(' or ');
  const bounds = [];
  const span = (low, high, unit) => {
    if (low !== undefined && high !== undefined) bounds.push(`${low} to ${high}${unit}`);
    else if (high !== undefined) bounds.push(`at most ${high}${unit}`);
    else if (low !== undefined) bounds.push(`at least ${low}${unit}`);
  };
  if (schema.maximum !== 9007199254740991) span(schema.minimum, schema.maximum, '');
  span(schema.minLength, schema.maxLength, ' characters');
  if (schema.default !== undefined) bounds.push('default ' + schema.default);
  return [schema.format || type, ...bounds].join(', ');
}

function fields(schema) {
  const resolved = follow(schema);
  const rows = Object.entries(resolved.properties || {}).flatMap(([name, property]) => {
    const required = (resolved.required || []).includes(name);
    const inner = follow(property);
    return [
      el('dt', {}, el('code', {}, name), required ? '' : el('span', { className: 'dim' }, ' optional')),
      el('dd', {}, el('span', { className: 'dim' }, typeOf(property)), property.description || inner.description ? ' ' : '',
        inline(property.description || inner.description || ''),
        inner.type === 'object' && inner.properties && !property.$ref ? fields(property) : ''),
    ];
  });
  return rows.length ? el('dl', {}, rows) : '';
}

const sample = value => el('pre', {}, typeof value === 'string' ? value : JSON.stringify(value, null, 2));
const samples = media => media.example !== undefined ? [sample(media.example)]
  : Object.values(media.examples || {}).map(example => sample(follow(example).value));

function curl(method, path, operation, body) {
  const address = api.servers[0].url + path.replace(/\{(\w+)\}/g, (_, name) => {
    const found = operation.all.map(follow).find(one => one.in === 'path' && one.name === name);
    return found && found.example !== undefined ? found.example : name;
  });
  const lines = [`curl -X ${method.toUpperCase()} '${address}'`];
  if ((operation.security || api.security).some(one => one.bearer)) lines.push("-H \"Authorization: Bearer $TOKEN\"");
  if (body) {
    const [kind, media] = Object.entries(body.content)[0];
    const example = media.example || (Object.values(media.examples || {})[0] || {}).value;
    if (kind === 'multipart/form-data') lines.push('-F file=@image.png');
    else if (example) lines.push(`-H 'Content-Type: ${kind}' -d '${JSON.stringify(example).replace(/'/g, "'\\''")}'`);
  }
  return lines.join(' \\\n  ');
}

function show(method, path, shared, operation) {
  operation.all = [...shared, ...(operation.parameters || [])];
  const body = operation.requestBody && follow(operation.requestBody);
  const access = !operation.security ? 'With or without a token.'
    : operation.security.some(one => one.bearer) ? 'Needs a token.' : 'Needs no token.';
  const content = [
    ...prose(operation.description),
    el('p', { className: 'dim' }, el('code', {}, operation.operationId), ' · ', access),
  ];
  const parameters = operation.all.map(follow);
  if (parameters.length) {
    content.push(el('h3', {}, 'Parameters'), el('dl', {}, parameters.flatMap(one => [
      el('dt', {}, el('code', {}, one.name), el('span', { className: 'dim' }, one.required ? ' ' + one.in : ` ${one.in}, optional`)),
      el('dd', {}, el('span', { className: 'dim' }, typeOf(one.schema)), one.description ? ' ' : '', inline(one.description || '')),
    ])));
  }
  if (body) {
    const media = Object.values(body.content)[0];
    content.push(el('h3', {}, 'Body'), fields(media.schema), ...samples(media));
  }
  content.push(el('h3', {}, 'Try it'), sample(curl(method, path, operation, body)));
  content.push(el('h3', {}, 'Responses'), el('dl', {}, Object.entries(operation.responses).flatMap(([status, response]) => {
    const answer = follow(response);
    const media = Object.values(answer.content || {})[0];
    const schema = media && follow(media.schema);
    const good = status < 300 && schema;
    return [
      el('dt', {}, el('code', {}, status)),
      el('dd', {}, inline(answer.description), good ? fields(media.schema) : '', good ? samples(media) : ''),
    ];
  })));
  return el('details', { className: 'operation', id: operation.operationId },
    el('summary', {}, el('span', { className: 'method ' + method }, method.toUpperCase()), el('code', {}, path),
      el('span', { className: 'summary' }, operation.summary)),
    el('div', { className: 'content' }, content));
}

const operations = Object.entries(api.paths).flatMap(([path, item]) =>
  ['get', 'post', 'put', 'patch', 'delete'].filter(method => item[method]).map(method =>
    ({ tag: item[method].tags[0], node: show(method, path, item.parameters || [], item[method]) })));

document.body.append(el('main', {},
  el('h1', {}, api.info.title),
  el('p', { className: 'dim' }, 'Version ' + api.info.version + ' · ', el('code', {}, api.servers[0].url), ' · ',
    el('a', { href: 'openapi.json' }, 'openapi.json')),
  ...prose(api.info.description),
  ...api.tags.flatMap(tag => [
    el('h2', { id: tag.name }, tag.name[0].toUpperCase() + tag.name.slice(1)),
    ...prose(tag.description, 'dim'),
    ...operations.filter(one => one.tag === tag.name).map(one => one.node),
  ]),
  el('h2', { id: 'schemas' }, 'Schemas'),
  ...Object.entries(api.components.schemas).filter(([, schema]) => schema.type === 'object').map(([name, schema]) =>
    el('details', { className: 'operation', id: 'schema-' + name },
      el('summary', {}, el('code', {}, name)), el('div', { className: 'content' }, ...prose(schema.description), fields(schema))))));

const open = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target && target.tagName === 'DETAILS') target.open = true;
  if (target) target.scrollIntoView();
};
addEventListener('hashchange', open);
open();
