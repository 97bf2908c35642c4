/** Types of the elements in templates: `import type {} from '@svc-pro/comments/svelte'`. */
import type { HTMLAttributes } from 'svelte/elements'
import type { Auth, CommentCountAttributes, CommentThreadAttributes, CommentThreadElement, CommentThreadEvents } from './index.js'

type Listeners = { [E in keyof CommentThreadEvents as `on${E}`]?: (event: CommentThreadEvents[E]) => void }

declare module 'svelte/elements' {
  interface SvelteHTMLElements {
    'comment-thread': Omit<HTMLAttributes<CommentThreadElement>, 'lang'> & CommentThreadAttributes & Listeners & { auth?: Auth }
    'comment-count': HTMLAttributes<HTMLElement> & CommentCountAttributes
  }
}
