/** Adds the widget to the page, from the service at this address, such as `https://comments.example.org/svc/api/v1`. */
export function load(api: string): void

/** The visitor's token, or a function that returns it; null for a guest. */
export type Auth = string | null | (() => string | null | Promise<string | null>)

export interface CommentThreadElement extends HTMLElement {
  auth: Auth
  /** Texts that override the service's. */
  labels?: Record<string, string>
}

export interface CommentThreadAttributes {
  type: string
  record: string | number
  sort?: 'newest' | 'oldest' | 'most_liked' | 'most_replied'
  lang?: string
  theme?: 'auto' | 'light' | 'dark'
  loading?: 'lazy' | 'eager'
  'sign-in-url'?: string
}

export interface CommentCountAttributes {
  type: string
  record: string | number
}

/** Events of `<comment-thread>`. They bubble, even out of shadow trees. */
export interface CommentThreadEvents {
  'comment-ready': CustomEvent<null>
  'comment-posted': CustomEvent<{ id: number }>
  /** A visitor wants to sign in. Call `preventDefault()` if the page handles it. */
  'comment-sign-in': CustomEvent<null>
}

declare global {
  interface HTMLElementTagNameMap {
    'comment-thread': CommentThreadElement
    'comment-count': HTMLElement
  }
  interface GlobalEventHandlersEventMap extends CommentThreadEvents {}
}
