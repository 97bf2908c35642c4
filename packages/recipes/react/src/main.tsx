import { useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { load, type CommentThreadElement } from '@svc-pro/comments'
import type {} from '@svc-pro/comments/react'

const API: string = import.meta.env.VITE_COMMENTS_API

/** The comments of a record. `token` is your function that returns the visitor's token, or null. */
function Comments({ record, token }: { record: string; token: () => Promise<string | null> }) {
  const [posted, setPosted] = useState(0)
  useEffect(() => load(API), [])
  // Sets a property, which the element adopts once its module has loaded.
  const setToken = (thread: CommentThreadElement | null) => void (thread && (thread.auth = token))
  return (
    <>
      <comment-thread type="posts" record={record} ref={setToken} oncomment-posted={() => setPosted(posted + 1)}>
        <a href={`${API}/posts/${record}/comments.html`}>Comments</a>
      </comment-thread>
      <p>Posted here: {posted}</p>
    </>
  )
}

const guest = async () => null

createRoot(document.getElementById('root')!).render(
  <main>
    <h1>A post</h1>
    <Comments record="react" token={guest} />
  </main>,
)
