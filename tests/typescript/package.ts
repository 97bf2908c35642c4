// Checks the types that the package exports. This file is compiled but not run.

import { load, type CommentThreadElement } from '@svc-pro/comments'
import { ApiError, createClient, type Schemas } from '@svc-pro/comments/client'

await load('https://comments.example.org/svc/api/v1')
const thread: CommentThreadElement | null = document.querySelector('comment-thread')
if (thread) thread.auth = async () => null
document.addEventListener('comment-posted', ({ detail }) => detail.id.toFixed())

const client = createClient({ api: 'https://comments.example.org/svc/api/v1', token: () => null })
const { data, meta } = await client.get('/public/{type}/{id}/comments', { path: { type: 'posts', id: '42' }, query: { cursor: '', per_page: 20 } })
const names: string[] = data.map((comment: Schemas['Comment']) => comment.user.name)
const written = await client.post('/{type}/{id}/comments', { path: { type: 'posts', id: '42' }, headers: { 'Idempotency-Key': 'k' }, body: { body: 'Hello.' } })
const id: number = written.data.id
const gone: undefined = await client.delete('/comments/{id}', { path: { id } })
const { data: ui } = await client.get('/ui')
const form = new FormData()
const image = await client.post('/media', { body: form })
const url: string = image.url
// @ts-expect-error: there is no such route
await client.get('/nothing')
// @ts-expect-error: the thread is missing
await client.get('/{type}/{id}/comments')
// @ts-expect-error: there is no such parameter
await client.get('/ui', { query: { size: 1 } })
// @ts-expect-error: the body is missing
await client.post('/{type}/{id}/comments', { path: { type: 'posts', id: '42' } })
try { await client.get('/ui') } catch (error) { if (error instanceof ApiError) error.errors.body?.[0] }
export { names, gone, ui, url, meta }
