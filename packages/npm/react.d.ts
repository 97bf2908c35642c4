/** Types of the elements in JSX: `import type {} from '@svc-pro/comments/react'`. */
import type { DetailedHTMLProps, HTMLAttributes } from 'react'
import type { CommentCountAttributes, CommentThreadAttributes, CommentThreadElement, CommentThreadEvents } from './index.js'

type Props<E extends HTMLElement> = Omit<DetailedHTMLProps<HTMLAttributes<E>, E>, 'lang'>
type Listeners = { [E in keyof CommentThreadEvents as `on${E}`]?: (event: CommentThreadEvents[E]) => void }

declare module 'react' {
  namespace JSX {
    interface IntrinsicElements {
      'comment-thread': Props<CommentThreadElement> & CommentThreadAttributes & Listeners
      'comment-count': Props<HTMLElement> & CommentCountAttributes
    }
  }
}
