/** Types of the elements in templates: `import type {} from '@svc-pro/comments/vue'`. */
import type { DefineComponent } from 'vue'
import type { Auth, CommentCountAttributes, CommentThreadAttributes, CommentThreadEvents } from './index.js'

type Listeners = { [E in keyof CommentThreadEvents]: (event: CommentThreadEvents[E]) => void }

declare module 'vue' {
  interface GlobalComponents {
    'comment-thread': DefineComponent<CommentThreadAttributes & { auth?: Auth }, {}, {}, {}, {}, {}, {}, Listeners>
    'comment-count': DefineComponent<CommentCountAttributes>
  }
}
